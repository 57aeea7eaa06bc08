package halo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/halo/halotest"
)

// TestLanesShareConnections opens a link that may have four connections at one end, and one at the other.
func TestLanesShareConnections(t *testing.T) {
	s := serve(t, server.Options{MaxPayload: 1500})
	e := halotest.FreshEnd(1000, 2)
	open := func(e End, most int) Link {
		dialled := 0
		o := impatient()
		o.Lanes = 4
		o.Dial = func(context.Context) (OwnConn, error) {
			if dialled++; dialled > most {
				return nil, errors.New("maximum connections exceeded")
			}
			return s.connect(t), nil
		}
		l, err := NewNATS(t.Context(), e, o)
		if err != nil {
			t.Fatal(err)
		}
		halotest.CloseAfter(t, l)
		if dialled != 4 {
			t.Errorf("%d connections were tried, want 4", dialled)
		}
		return l
	}
	halotest.Both(t, open(e, 4), open(e.Facing(), 1), e, 0, 20, nil)
}

// refusing is a connection that sends nothing.
type refusing struct {
	Conn
	err error
}

func (p refusing) Publish(string, []byte) error { return p.err }

// TestLaneFails has the lanes refuse to publish. Send does not wait for them, and the next call reports the error.
func TestLaneFails(t *testing.T) {
	s := serve(t, server.Options{})
	e := halotest.FreshEnd(8, 8)
	o := impatient()
	o.Conn = refusing{s.connect(t), errors.New("maximum payload exceeded")}
	l, err := NewNATS(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	halotest.CloseAfter(t, l)
	if err := l.Send(t.Context(), 7, make([]byte, e.SendBytes())); err != nil {
		t.Fatal(err)
	}
	const want = "send exchange 7: maximum payload exceeded"
	if err := l.Recv(t.Context(), 7, make([]byte, e.RecvBytes())); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Recv: %v, want %q", err, want)
	}
	if err := l.Send(t.Context(), 8, make([]byte, e.SendBytes())); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Send: %v, want %q", err, want)
	}
}
