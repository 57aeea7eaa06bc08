package roster

import (
	"testing"
	"time"
)

func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		e    Event
		want time.Duration
		ok   bool
	}{
		{Event{Sweeps: 250, MaxSweeps: 1000, Elapsed: 10 * time.Second}, 30 * time.Second, true},
		{Event{MaxSweeps: 1000}, 0, false},
		{Event{Sweeps: 1000, MaxSweeps: 1000, Elapsed: time.Second}, 0, false},
		{Event{Sweeps: 1, MaxSweeps: 1 << 62, Elapsed: time.Hour}, 0, false},
	} {
		if got, ok := c.e.TimeLeft(); got != c.want || ok != c.ok {
			t.Errorf("%d of %d after %v: %v, %v, want %v, %v", c.e.Sweeps, c.e.MaxSweeps, c.e.Elapsed, got, ok, c.want, c.ok)
		}
	}
}
