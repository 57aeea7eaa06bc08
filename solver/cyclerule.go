package solver

// CycleRule decides from norms alone when a run ends whose norms come now and then: one a cycle, or several.
type CycleRule struct {
	Tolerance float64 // the run ends with a norm of at most Tolerance,
	Relative  float64 // or of at most Relative times the first norm,
	// Or it ends when Patience norms in a row are not below Fall times the least one before them: only rounding is
	// left.
	Patience int
	Fall     float64
	// Norms above Noise times the least one, and all norms until they have fallen to a tenth of the first one, count
	// a tenth: beside fixed points norms may grow at first, which is not rounding. 0: all norms count.
	Noise float64

	First float64 // the first norm; 0 before it
	least float64
	since int // tenths of norms since the least one
	seen  bool
}

const tenths = 10

// Ends returns the index of the norm with which a run ends, and the reason. The reason is "" if none ends it.
func (c CycleRule) Ends(norms []float64) (index int, reason StopReason) {
	for i, norm := range norms {
		if reason := c.Add(norm); reason != "" {
			return i, reason
		}
	}
	return 0, ""
}

// Add takes the next norm. It returns the reason why the run ends with the field that has it, or "".
func (c *CycleRule) Add(norm float64) StopReason {
	if c.First == 0 {
		c.First = norm
	}
	if c.Noise > 0 && (norm > c.Noise*c.least || c.least > c.First/10) {
		c.since++
	} else {
		c.since += tenths
	}
	if !c.seen || norm < c.Fall*c.least {
		c.least, c.since, c.seen = norm, 0, true
	}
	switch {
	case norm == 0:
		return Stalled
	case norm <= c.Tolerance, norm <= c.Relative*c.First:
		return Converged
	case c.since >= tenths*c.Patience:
		return Stalled
	}
	return ""
}
