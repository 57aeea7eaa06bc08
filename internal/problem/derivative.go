package problem

// Derivative returns the outward derivative of a Neumann wall at one of its points. Walls are numbered in the order of
// solver.Walls.
func (p *Problem) Derivative(wall, iy, ix int) (float64, error) {
	q := []part{p.left, p.right, p.top, p.bottom}[wall]
	v := q.node.at(&span{}, iy, ix)
	return v, p.finite(q, iy, ix, v)
}
