package halo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/halo/halotest"
)

func TestConformance(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.Name, func(t *testing.T) { halotest.Run(t, tr) })
	}
}

func transports(t testing.TB) []halotest.Transport {
	small := serve(t, &server.Options{MaxPayload: 1500})
	normal := serve(t, &server.Options{})
	overNATS := func(s *testServer) func(testing.TB, End, End, time.Duration) (Link, Link, error) {
		return func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return openNATS(t, a, b, NATSOptions{Timeout: timeout, AskAfter: 5 * time.Millisecond}, s.connect(t),
				s.connect(t))
		}
	}
	return []halotest.Transport{
		{Name: TransportMemory, Open: func(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return NewMemory(a, b, timeout)
		}},
		{Name: TransportShared, Open: openShared},
		{Name: TransportNATS, Open: overNATS(normal)},
		{Name: TransportNATS + ", max_payload 1500", Open: overNATS(small)},
		{Name: TransportNATS + ", connections of their own",
			Open: func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
				dial := func(context.Context) (OwnConn, error) { return normal.connect(t), nil }
				return openNATS(t, a, b, NATSOptions{Dial: dial, Timeout: timeout, AskAfter: 5 * time.Millisecond}, nil,
					nil)
			}},
	}
}

func openShared(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
	o := SharedOptions{Timeout: timeout}
	la, h, err := CreateShared(a, o)
	if err != nil {
		return nil, nil, err
	}
	lb, err := OpenShared(b, h, o)
	if err != nil {
		return nil, nil, errors.Join(err, la.Close())
	}
	return la, lb, nil
}

func openNATS(t testing.TB, a, b End, o NATSOptions, ca, cb Conn) (Link, Link, error) {
	oa, ob := o, o
	oa.Conn, ob.Conn = ca, cb
	la, err := NewNATS(t.Context(), a, oa)
	if err != nil {
		return nil, nil, err
	}
	lb, err := NewNATS(t.Context(), b, ob)
	if err != nil {
		return nil, nil, errors.Join(err, la.Close())
	}
	return la, lb, nil
}
