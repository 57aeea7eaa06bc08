package roster

import (
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	const s, h = time.Second, time.Hour
	leaves := func(d time.Duration) Event { return Event{Sweeps: 10, MaxSweeps: 80, End: 80, Left: d} }
	for _, c := range []struct {
		e    Event
		want string
	}{
		{Event{Sweeps: 250, MaxSweeps: 1000, End: 1000, Left: 30 * s}, "250 of 1000 sweeps (25%), about 30 s left"},
		{Event{Sweeps: 250, MaxSweeps: 1e8, End: 126487, Left: 400 * time.Millisecond},
			"250 of about 126000 sweeps (0%), about 1 s left"},
		{Event{Sweeps: 7, MaxSweeps: 1e8}, "7 of at most 100000000 sweeps"},
		{Event{Sweeps: 1000, MaxSweeps: 1e8, End: 1000}, "1000 of 1000 sweeps (100%)"},
		{leaves(59600 * time.Millisecond), "10 of 80 sweeps (12%), about 60 s left"},
		{leaves(217 * s), "10 of 80 sweeps (12%), about 3m40s left"},
		{leaves(1499 * s), "10 of 80 sweeps (12%), about 25m left"},
		{leaves(h + 48*time.Minute + 51*s), "10 of 80 sweeps (12%), about 1h50m left"},
		{leaves(70 * h), "10 of 80 sweeps (12%), about 3 days left"},
		{leaves(1<<63 - 1), "10 of 80 sweeps (12%), about 292 years left"},
	} {
		c.e.Norm, c.e.GLUPs = 0.0721, 5.25
		goal, left, found := strings.Cut(c.want, ",")
		want := goal + ", norm 7.2100e-02, 5.250 GLUP/s"
		if found {
			want += "," + left
		}
		if got := c.e.Progress(); got != want {
			t.Errorf("%+v: %s, want %s", c.e, got, want)
		}
	}
}
