package halo_test

import (
	"context"
	"errors"
	"fmt"
	. "jacobi/halo"
	"jacobi/halo/halotest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLinkFaults checks that Faults.Link delays and cuts, and does nothing else.
func TestLinkFaults(t *testing.T) {
	e := halotest.FreshEnd(8, 1)
	a, b, err := NewMemory(e, e.Facing(), halotest.Long)
	if err != nil {
		t.Fatal(err)
	}
	halotest.CloseAfter(t, a, b)
	cut := Faults{Delay: 1, MaxDelay: time.Millisecond, CutFrom: 10, CutCount: -1}
	halotest.Both(t, cut.Link(a), b, e, 0, 10, nil)
	if err := cut.Link(a).Send(t.Context(), 10, make([]byte, e.SendBytes())); !errors.Is(err, ErrCut) {
		t.Errorf("got %v, want %v", err, ErrCut)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	slow := Faults{Delay: 1, MaxDelay: time.Hour}
	if err := slow.Link(a).Recv(ctx, 10, make([]byte, e.RecvBytes())); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// sink is a Publisher that keeps the messages.
type sink struct {
	mu   sync.Mutex
	sent []string
}

func (s *sink) Publish(_ string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, string(data))
	return nil
}

// TestPublishAfterClose checks that a message published after Close is lost, delayed or not.
func TestPublishAfterClose(t *testing.T) {
	for _, f := range []Faults{{}, {Delay: 1}} {
		var s sink
		p := f.Publisher(&s)
		if err := errors.Join(p.Publish("x", []byte("before")), p.Close(), p.Publish("x", []byte("after")),
			p.Close()); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.sent); got != "[before]" {
			t.Errorf("%+v: sent %s, want [before]", f, got)
		}
	}
}

func TestFaultsAreSeeded(t *testing.T) {
	harm := func(seed uint64) string {
		var s sink
		p := Faults{Seed: seed, Drop: 0.2, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.2, CutFrom: 50,
			CutCount: 10}.Publisher(&s)
		for i := range 100 {
			if err := p.Publish("x", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.sent, " ")
	}
	first := harm(1)
	if again := harm(1); again != first {
		t.Errorf("one seed, two outcomes: %s and %s", first, again)
	}
	if harm(2) == first {
		t.Error("two seeds, one outcome")
	}
}
