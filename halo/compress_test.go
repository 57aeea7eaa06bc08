package halo

import (
	"testing"
	"time"

	"jacobi/solver"
)

// A link that chooses by itself tries plain and packed exchanges at the start of each round.
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name          string
		mode          Compress
		plain, packed time.Duration // of all exchanges of the trial but the slow one
		trial, after  bool          // whether packed exchanges of the trial, and later ones, are packed
	}{
		{"a slow link", CompressAuto, 10 * time.Millisecond, 4 * time.Millisecond, true, true},
		{"a fast link", CompressAuto, time.Millisecond, 3 * time.Millisecond, true, false},
		{"a small gain", CompressAuto, 10 * time.Millisecond, 9 * time.Millisecond, true, false},
		{"rows that come before this rank sends", CompressAuto, -time.Second, -time.Second, true, false},
		{"always", CompressAlways, time.Millisecond, time.Second, true, true},
		{"never", CompressNever, time.Second, time.Millisecond, false, false},
		{"no choice", "", time.Second, time.Millisecond, false, false},
	} {
		ch := choice{mode: c.mode}
		for n := range solver.ExchangeNumber(3 * trialRound) {
			at := n % trialRound
			want, travel := c.mode == CompressAlways, c.plain
			switch {
			case at >= 2*trialLength:
				want = c.after
			case at >= trialLength:
				want, travel = c.trial, c.packed
			}
			if at == trialLength+1 {
				travel = 10 * time.Second // a neighbour that is late once decides nothing
			}
			posted := time.Now()
			if got := ch.post(2*n, true, posted); got != want {
				t.Fatalf("%s, exchange %d: packed %v, want %v", c.name, n, got, want)
			}
			ch.arrived(2*n, posted.Add(travel))
			if at >= 2*trialLength-1 && ch.post(2*n+1, false, posted) != c.after {
				t.Fatalf("%s, exchange %d: a smaller one is packed %v, want %v", c.name, 2*n+1, !c.after, c.after)
			}
			ch.arrived(2*n+1, posted) // at once, which decides nothing
		}
	}
}

func TestParseCompress(t *testing.T) {
	for _, c := range []Compress{CompressAuto, CompressNever, CompressAlways} {
		if got, err := ParseCompress(string(c)); got != c || err != nil {
			t.Errorf("%s: %v, %v", c, got, err)
		}
	}
	_, err := ParseCompress("zip")
	if want := `halo.compress "zip": allowed are auto, never and always`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
