package cpu

import "jacobi/solver"

// collector gathers the group sums of one sweep on one thread.
type collector struct {
	magnitude solver.Magnitude
	sum       solver.Sum
}

func (c *collector) reset() { c.sum = solver.Sum{} }

// total returns the exact sum of all groups collected since reset.
func (c *collector) total() solver.Sum { return c.sum }
