package halo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	. "jacobi/halo"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

func TestNATSTimeoutDetail(t *testing.T) {
	s := serve(t, server.Options{})
	for _, c := range []struct {
		name   string
		faults rostertest.Faults
		want   string
	}{
		{"slow neighbour", rostertest.Faults{}, "times that it has not sent them yet"},
		{"silent neighbour", rostertest.Faults{CutCount: -1}, "rank 2 did not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := impatient()
			o.Timeout = time.Second // in which a busy server opens the link, too
			_, b := faulty(t, s, freshEnd(8, 8), o, 0, c.faults)
			err := b.Recv(t.Context(), 17, make([]byte, 8*8*8))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// openEnd opens one end of a link over NATS.
func openEnd(t *testing.T, e End, o NATSOptions) *FramedLink {
	t.Helper()
	l, err := NewNATS(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	return l
}

// TestNATSStrayFrames sends a link frames that are not its own. They must be refused, counted, logged once, and named
// in the error of a timeout.
func TestNATSStrayFrames(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(8, 8)
	core, logs := observer.New(zap.WarnLevel)
	o := impatient()
	o.Timeout = 300 * time.Millisecond
	o.Conn, o.Log = s.connect(t), zap.New(core)
	l := openEnd(t, e, o)
	good, messages := NATSFrames(e)
	for _, m := range messages {
		if err := o.Conn.Publish(NATSSubject(o, e), m); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := o.Conn.FlushWithContext(ctx); err != nil { // the server has delivered the messages before it answers
		t.Fatal(err)
	}
	err := l.Recv(t.Context(), 0, make([]byte, e.RecvBytes()))
	if want := fmt.Sprintf("%d frames were refused, the last one: bytes of a part 512, want 256",
		len(messages)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if got := logs.Len(); got != 1 {
		t.Errorf("%d log entries, want 1", got)
	}
	// The link still works.
	if err := o.Conn.Publish(NATSSubject(o, e), good); err != nil {
		t.Fatal(err)
	}
	if err := l.Recv(t.Context(), 0, make([]byte, e.RecvBytes())); err != nil {
		t.Error(err)
	}
}

func TestNATSConnectionClosed(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(8, 8)
	o := impatient()
	o.Conn = s.connect(t)
	l := openEnd(t, e, o)
	o.Conn.Close()
	if err := l.Recv(t.Context(), 0, make([]byte, e.RecvBytes())); !errors.Is(err, pubsub.ErrClosed) {
		t.Errorf("Recv: %v, want %v", err, pubsub.ErrClosed)
	}
	if err := l.Send(t.Context(), 0, make([]byte, e.SendBytes())); !errors.Is(err, pubsub.ErrClosed) {
		t.Errorf("Send: %v, want %v", err, pubsub.ErrClosed)
	}
}

func TestNATSRefusesTinyFrames(t *testing.T) {
	s := serve(t, server.Options{MaxPayload: HeaderSize})
	o := NATSOptions{Conn: s.connect(t), Timeout: long}
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), o); err == nil ||
		!strings.Contains(err.Error(), "a header alone takes 76") {
		t.Errorf("got %v", err)
	}
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), NATSOptions{Timeout: long}); err == nil {
		t.Error("a link without a connection was opened")
	}
}

// TestNATSOwnConnection checks that a link closes its own connection, even when the link cannot be opened.
func TestNATSOwnConnection(t *testing.T) {
	s := serve(t, server.Options{})
	nc, shared := s.dial(t), s.connect(t)
	own := wire.Over(nc)
	o := NATSOptions{Conn: shared, Timeout: long,
		Dial: func(context.Context) (pubsub.Conn, error) { return own, nil }}
	l, err := NewNATS(t.Context(), freshEnd(8, 8), o)
	if err != nil {
		t.Fatal(err)
	}
	if n := nc.NumSubscriptions(); n != 2 {
		t.Errorf("%d subscriptions on the link's own connection, want 2", n)
	}
	if err := l.Close(); err != nil || own.Status() != pubsub.Closed || shared.Status() != pubsub.Connected {
		t.Errorf("after Close (%v): own connection %v, the other one %v; want %v and %v", err, own.Status(),
			shared.Status(), pubsub.Closed, pubsub.Connected)
	}

	own, o.MaxFrame = s.connect(t), HeaderSize
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), o); err == nil ||
		own.Status() != pubsub.Closed {
		t.Errorf("frames without room for rows: %v; own connection %v, want %v", err, own.Status(),
			pubsub.Closed)
	}

	refused := errors.New("connection refused")
	o.Dial = func(context.Context) (pubsub.Conn, error) { return nil, refused }
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), o); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
}

// closing is a connection that a link has for itself. It closes the link before its status or Publish is looked at.
type closing struct {
	*wire.Conn
	status, publish func()
}

func (c *closing) Status() pubsub.Status {
	c.status()
	return c.Conn.Status()
}

func (c *closing) Publish(subject string, data []byte) error {
	c.publish()
	return c.Conn.Publish(subject, data)
}

// A call that finds its connection closed because another goroutine closes the link reports a closed link.
func TestNATSCloseDuringCalls(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(8, 8)
	recv := func(l *FramedLink) error { return l.Recv(t.Context(), 0, make([]byte, e.RecvBytes())) }
	send := func(l *FramedLink) error { return l.Send(t.Context(), 0, make([]byte, e.SendBytes())) }
	const received = "halo: rank 2, bottom side: receive exchange 0, rank 3 over nats: link closed"
	for _, c := range []struct {
		name  string
		call  func(*FramedLink) error
		at    string // the call of the connection at which the link is closed
		count int    // of those calls
		want  string
	}{
		{"Recv begins", recv, "status", 1, received},
		{"Recv asks", recv, "status", 2, received},
		{"Recv publishes a request", recv, "publish", 1, received},
		{"Send begins", send, "status", 1, "halo: rank 2, bottom side: send exchange 0, rank 3 over nats: link closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l *FramedLink
			calls := map[string]int{}
			closeAt := func(what string) func() {
				return func() {
					if calls[what]++; what == c.at && calls[what] == c.count {
						if err := l.Close(); err != nil {
							t.Error(err)
						}
					}
				}
			}
			o := impatient()
			o.Dial = func(context.Context) (pubsub.Conn, error) {
				return &closing{s.connect(t), closeAt("status"), closeAt("publish")}, nil
			}
			var err error
			if l, err = NewNATS(t.Context(), e, o); err != nil {
				t.Fatal(err)
			}
			err = c.call(l)
			if err == nil || err.Error() != c.want || !errors.Is(err, ErrClosed) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestLanesShareConnections opens a link that may have four connections at one end, and one at the other.
func TestLanesShareConnections(t *testing.T) {
	s := serve(t, server.Options{MaxPayload: 1500})
	e := freshEnd(1000, 2)
	open := func(e End, most int) Link {
		dialled := 0
		o := impatient()
		o.Lanes = 4
		o.Dial = func(context.Context) (pubsub.Conn, error) {
			if dialled++; dialled > most {
				return nil, errors.New("maximum connections exceeded")
			}
			return s.connect(t), nil
		}
		l := openEnd(t, e, o)
		if dialled != 4 {
			t.Errorf("%d connections were tried, want 4", dialled)
		}
		return l
	}
	both(t, open(e, 4), open(e.Facing(), 1), e, 0, 20, nil)
}

// refusing is a connection that sends nothing.
type refusing struct {
	pubsub.Conn
	err error
}

func (p refusing) Publish(string, []byte) error { return p.err }

// TestLaneFails has the lanes refuse to publish. Send does not wait for them, and the next call reports the error.
func TestLaneFails(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(8, 8)
	o := impatient()
	o.Conn = refusing{s.connect(t), errors.New("maximum payload exceeded")}
	l := openEnd(t, e, o)
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
