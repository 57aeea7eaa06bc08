package problem

// Derivative returns the outward derivative of a Neumann wall at one of its points. Walls are numbered in the order of
// solver.Walls.
func (p *Problem) Derivative(wall, iy, ix int) (float64, error) {
	q := []part{p.left, p.right, p.top, p.bottom}[wall]
	v := q.node.at(&span{}, iy, ix)
	return v, p.finite(q, iy, ix, v)
}

// RightHandSide writes f at the points of row iy from column col on to dst. At fixed walls, where no sweep needs it, it
// need not be finite.
func (p *Problem) RightHandSide(iy, col int, dst []float64) error {
	s := &span{row: iy, col: col}
	if p.source.file == nil {
		p.source.node.fill(s, dst)
		return nil
	}
	return p.fromFile(p.source, s, dst)
}
