package levels

import "jacobi/solver/multigrid"

// coarsest solves the coarsest level, which is held as a whole.
type coarsest struct {
	*multigrid.Direct
	x, b []float64 // by block and slot
}

func newCoarsest(l multigrid.Layout) (*coarsest, error) {
	d, err := l.NewDirect()
	if err != nil {
		return nil, err
	}
	n := d.Blocks * d.Slots
	return &coarsest{d, make([]float64, n), make([]float64, n)}, nil
}

// solve sets u at the free points of a level; the others stay 0.
func (c *coarsest) solve(l *level[float32]) {
	c.each(func(i, x, y int) { c.b[i] = float64(l.b.at(y)[x]) })
	c.Solve(c.x, c.b)
	c.each(func(i, x, y int) { l.u.at(y)[x] = float32(c.x[i]) })
	for y := l.own.Lo; y < l.own.Hi; y++ {
		repeat(l.u.at(y), l.Mesh)
	}
}

// each calls f for the free points, in the order of their values.
func (c *coarsest) each(f func(i, x, y int)) {
	for i := range c.b {
		if block, slot := i/c.Slots, i%c.Slots; c.Free(block, slot) {
			x, y := c.Point(block, slot)
			f(i, x, y)
		}
	}
}
