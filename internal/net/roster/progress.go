package roster

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Progress returns how far the run is, in words.
func (e Event) Progress() string {
	text := fmt.Sprintf("%d %s", e.Sweeps, e.Goal())
	if e.End > 0 {
		text += fmt.Sprintf(" (%d%%)", int(100*e.Share()))
	}
	return text + ", " + e.Status()
}

// Goal returns how many sweeps the run will do, in words.
func (e Event) Goal() string {
	steps := cmp.Or(e.Step, "sweep") + "s"
	switch {
	case e.End > 0 && e.End < e.MaxSweeps && e.End > e.Sweeps:
		return fmt.Sprintf("of about %d %s", rounded(e.End), steps)
	case e.End > 0:
		return fmt.Sprintf("of %d %s", e.End, steps)
	default:
		return fmt.Sprintf("of at most %d %s", e.MaxSweeps, steps)
	}
}

// Share returns the share of the run's sweeps that is done, 0 to 1; 0 if the end is not known.
func (e Event) Share() float64 {
	if e.End <= 0 {
		return 0
	}
	return min(1, float64(e.Sweeps)/float64(e.End))
}

// Status returns the part of Progress after the number of sweeps: norm, speed and time left.
func (e Event) Status() string {
	text := fmt.Sprintf("norm %.4e, %.3f GLUP/s", float64(e.Norm), float64(e.GLUPs))
	if e.Left > 0 {
		text += fmt.Sprintf(", about %s left", Coarse(e.Left))
	}
	return text
}

// rounded rounds an estimate to three digits.
func rounded(n int) int {
	unit := int(math.Pow(10, max(0, math.Floor(math.Log10(float64(n)))-2)))
	return (n + unit/2) / unit * unit
}

// Coarse formats an estimated duration with as many digits as it deserves: 18 s, 3m40s, 25m, 1h50m, 3 days.
func Coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(1, math.Round(d.Seconds()))))
	case d < 10*time.Minute:
		d = d.Round(10 * time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour-time.Minute/2:
		return fmt.Sprintf("%dm", d.Round(time.Minute)/time.Minute)
	case d < 48*time.Hour:
		d = d.Round(10 * time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 2*365*24*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	default:
		return fmt.Sprintf("%.0f years", d.Hours()/24/365)
	}
}
