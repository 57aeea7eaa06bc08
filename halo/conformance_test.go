package halo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/internal/base/pubsub"
)

func TestConformance(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.Name, func(t *testing.T) { runSuite(t, tr) })
	}
}

func transports(t testing.TB) []transport {
	small := serve(t, server.Options{MaxPayload: 1500})
	normal := serve(t, server.Options{})
	overNATS := func(s testServer, compress Compress) func(testing.TB, End, End, time.Duration) (Link, Link, error) {
		return func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			o := NATSOptions{Timeout: timeout, AskAfter: 5 * time.Millisecond, Compress: compress}
			return openNATS(t, a, b, o, s.connect(t), s.connect(t))
		}
	}
	return []transport{
		{Name: TransportMemory, Open: func(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return NewMemory(a, b, timeout)
		}},
		{Name: TransportShared, Open: openShared},
		{Name: TransportDirect, Open: overTCP(normal, func(o *DirectOptions) { o.Trusted = true })},
		{Name: TransportDirect + ", with checksums", Open: overTCP(normal, func(*DirectOptions) {})},
		{Name: TransportDirect + ", encrypted", Open: overTCP(normal, func(o *DirectOptions) { o.Encrypt = true })},
		{Name: TransportDirect + ", three sockets", Open: overTCP(small, func(o *DirectOptions) { o.Streams = 3 })},
		{Name: TransportDirect + ", packed", Open: overTCP(normal, func(o *DirectOptions) {
			o.NATS.Compress = CompressAlways
		})},
		{Name: TransportDirect + ", packed, encrypted, two sockets", Open: overTCP(small, func(o *DirectOptions) {
			o.NATS.Compress, o.Encrypt, o.Streams = CompressAlways, true, 2
		})},
		{Name: TransportNATS, Open: overNATS(normal, CompressNever)},
		{Name: TransportNATS + ", max_payload 1500", Open: overNATS(small, CompressNever)},
		{Name: TransportNATS + ", packed", Open: overNATS(small, CompressAlways)},
		{Name: TransportNATS + ", four lanes",
			Open: func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
				dial := func(context.Context) (pubsub.Conn, error) { return small.connect(t), nil }
				return openNATS(t, a, b, NATSOptions{Dial: dial, Lanes: 4, Timeout: timeout,
					AskAfter: 5 * time.Millisecond}, nil, nil)
			}},
	}
}

// overTCP opens links over TCP, whose lost rows go over NATS by the server s.
func overTCP(s testServer, change func(*DirectOptions)) func(testing.TB, End, End, time.Duration) (Link, Link, error) {
	return func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
		o := DirectOptions{Listen: ListenAt{Where: "127.0.0.1"}, DialTimeout: long,
			NATS: NATSOptions{Timeout: timeout, AskAfter: 5 * time.Millisecond}}
		change(&o)
		return openDirect(t, a, b, o, s.connect(t), s.connect(t))
	}
}

func openDirect(t testing.TB, a, b End, o DirectOptions, ca, cb pubsub.Conn) (Link, Link, error) {
	oa, ob := o, o
	oa.NATS.Conn, ob.NATS.Conn = ca, cb
	la, offer, err := Direct{Options: oa}.Offer(a)
	if err != nil {
		return nil, nil, err
	}
	lb, err := Direct{Options: ob}.Accept(b, offer)
	if err != nil {
		return nil, nil, errors.Join(err, la.Close())
	}
	return la, lb, nil
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

func openNATS(t testing.TB, a, b End, o NATSOptions, ca, cb pubsub.Conn) (Link, Link, error) {
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
