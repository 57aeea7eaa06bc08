package roster

import (
	"fmt"
	"math"
	"time"
)

// Progress says in words how far a run is.
func (e Event) Progress() string {
	return fmt.Sprintf("%d of %d sweeps (%d%%), %s", e.Sweeps, e.MaxSweeps, 100*e.Sweeps/max(1, e.MaxSweeps), e.Status())
}

// Status says in words what is behind the number of sweeps.
func (e Event) Status() string {
	text := fmt.Sprintf("norm %.4e, %.3f GLUP/s", float64(e.Norm), float64(e.GLUPs))
	if left, ok := e.TimeLeft(); ok {
		text += fmt.Sprintf(", at most %v left", left)
	}
	return text
}

// TimeLeft returns how long all sweeps that are allowed will take; the run may converge earlier.
func (e Event) TimeLeft() (time.Duration, bool) {
	if e.Sweeps < 1 || e.MaxSweeps <= e.Sweeps || e.Elapsed <= 0 {
		return 0, false
	}
	left := float64(e.Elapsed) / float64(e.Sweeps) * float64(e.MaxSweeps-e.Sweeps)
	if left >= math.MaxInt64 {
		return 0, false
	}
	return time.Duration(left).Round(time.Second), true
}
