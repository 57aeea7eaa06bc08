package progress

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/awake"
)

// sweepNorm returns the norm of the update of sweep k from the field 0, between walls of 1 around n x n points.
func sweepNorm(n, k int) float64 {
	sum := 0.0
	step := math.Pi / float64(n+1)
	along := func(p int) float64 { // the sum of the sine wave p, squared, over its mean square
		half := float64(p) * step / 2
		s := math.Sin(half*float64(n+1)) * math.Sin(half*float64(n)) / math.Sin(half)
		return s * s * 2 / float64(n+1)
	}
	for p := 1; p <= n; p += 2 {
		for q := 1; q <= n; q += 2 {
			kept := (math.Cos(float64(p)*step) + math.Cos(float64(q)*step)) / 2
			sum += along(p) * along(q) * (1 - kept) * (1 - kept) * math.Pow(kept*kept, float64(k))
		}
	}
	return math.Sqrt(sum)
}

// The end of sweeps is unknown while their norm falls as a power, then known to a factor of two, and soon nearly right.
func TestCourseOfSweeps(t *testing.T) {
	const n, target = 64, 1e-8
	end := 0
	for sweepNorm(n, end) > target {
		end += 100
	}
	c := course{target: target, max: 1e9, sweeps: true}
	known := false
	for k := 20; k < end; k += 20 {
		c.add(k+1, sweepNorm(n, k))
		got, ok := c.end()
		if known = known || ok; known != ok {
			t.Fatalf("the end is unknown again after sweep %d", k)
		}
		off := 1.0
		switch {
		case k > end/5:
			off = 0.02
		case k > end/10:
			off = 0.15
		case !ok:
			continue
		}
		if math.Abs(float64(got-end)) > off*float64(end) {
			t.Errorf("after sweep %d: %d sweeps, want about %d", k, got, end)
		}
	}
	c.max = end / 2
	if got, ok := c.end(); got != end/2 || !ok {
		t.Errorf("with max %d: %d, %v", end/2, got, ok)
	}
}

// The end of cycles follows from two norms.
func TestCourseOfCycles(t *testing.T) {
	for _, c := range []struct {
		norms []float64
		want  int // 0: unknown
	}{
		{[]float64{1}, 0},
		{[]float64{1, 0.1}, 8},
		{[]float64{1, 0.1, 0.02, 0.004}, 11},
		{[]float64{1, 0.1, 1e-9}, 2},
		{[]float64{1, 1}, 0},
		{[]float64{1, 1 - 1e-9}, 1000},
		{[]float64{1, 0}, 1},
	} {
		run := course{target: 1e-8, max: 1000}
		for k, norm := range c.norms {
			run.add(k, norm)
		}
		if got, ok := run.end(); got != c.want || ok != (c.want > 0) {
			t.Errorf("%v: %d, %v; want %d", c.norms, got, ok, c.want)
		}
	}
	if got, ok := (&course{max: 7}).end(); got != 7 || !ok {
		t.Errorf("without a tolerance: %d, %v; want 7", got, ok)
	}
}

// The time is estimated from the last seconds alone. The run goes on from 40,000 sweeps, and then slows down.
func TestTimeForUsesRecentSweeps(t *testing.T) {
	var s speed
	var at time.Duration
	s.add(at, 40000)
	if got := s.timeFor(1000); got != 0 {
		t.Errorf("%v before a speed is known", got)
	}
	for range 100 {
		at += time.Second / 5
		s.add(at, s.marks[len(s.marks)-1].sweeps+1000)
	}
	if got := s.timeFor(100000); got != 20*time.Second {
		t.Errorf("%v for 100,000 sweeps at 5,000 a second", got)
	}
	for range 26 {
		at += time.Second / 5
		s.add(at, s.marks[len(s.marks)-1].sweeps+100)
	}
	if got := s.timeFor(1000); got != 2*time.Second {
		t.Errorf("%v for 1,000 sweeps at 500 a second", got)
	}
	if n := len(s.marks); n > 30 {
		t.Errorf("%d marks are kept", n)
	}
	if got := s.timeFor(0); got != 0 {
		t.Errorf("%v for no sweeps", got)
	}
}

// Time in which the run is stopped does not count: a minute of Ctrl-Z does not make 13 minutes 44 hours.
func TestTimeForLeavesOutStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped atomic.Bool
		clock := awake.Of(awake.Start(ctx, stopped.Load))
		var s speed
		s.add(clock.Now(), 0)
		time.Sleep(time.Second)
		s.add(clock.Now(), 1000)
		stopped.Store(true)
		time.Sleep(time.Minute)
		stopped.Store(false)
		time.Sleep(time.Second)
		s.add(clock.Now(), 2000)
		if got := s.timeFor(1000); got < 900*time.Millisecond || got > 1100*time.Millisecond {
			t.Errorf("%v for 1,000 sweeps at 1,000 a second", got)
		}
	})
}
