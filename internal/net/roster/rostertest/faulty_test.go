package rostertest

import (
	"fmt"
	"testing"

	"jacobi/internal/base/pubsub"
)

// sink is a connection that keeps what is published.
type sink struct {
	pubsub.Conn // nil: other methods must not be called
	sent        string
}

func (s *sink) Publish(_ string, data []byte) error {
	s.sent += string(data) + " "
	return nil
}

// The faults follow from the seed, and nothing is sent after Settle.
func TestFaultsAreSeeded(t *testing.T) {
	harm := func(seed uint64) string {
		s := &sink{}
		f := Lossy(0.2)
		f.Corrupt, f.CutFrom, f.CutCount = 0.2, 50, 10
		c := NewFaulty(s, seed, f)
		for i := range 101 {
			if i == 100 {
				c.Settle()
				c.Misbehave(Faults{})
			}
			if err := c.Publish("x", fmt.Append(nil, "m", i)); err != nil {
				t.Fatal(err)
			}
		}
		if c.Lost() < 11 {
			t.Errorf("%d messages were lost, want the 10 of the cut and the last one at least", c.Lost())
		}
		return s.sent
	}
	first := harm(1)
	if again := harm(1); again != first {
		t.Errorf("one seed, two outcomes: %s and %s", first, again)
	}
	if harm(2) == first {
		t.Error("two seeds, one outcome")
	}
}
