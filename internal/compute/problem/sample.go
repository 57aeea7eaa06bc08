package problem

import (
	"fmt"

	"jacobi/solver"
)

// Values stores the values of row iy of the initial field at the columns cols in dst, rounded to the field's type.
func (p *Problem) Values(iy int, cols []int, dst []float64) error {
	var s span
	q, from := p.inner(iy)
	lo, hi := p.mesh.InteriorColumns()
	var file []byte
	size := p.mesh.DType.Size()
	if q.file != nil {
		file = make([]byte, (hi-lo)*size)
		if err := p.fileRow(q, from, file); err != nil {
			return fmt.Errorf("row %d: %w", iy, err)
		}
	}
	for i, ix := range cols {
		part, row := q, from
		switch {
		case ix == 0 && p.mesh.Walls.Left == solver.Dirichlet:
			part, row = p.left, iy
		case ix == p.mesh.NX-1 && p.mesh.Walls.Right == solver.Dirichlet:
			part, row = p.right, iy
		case p.mesh.PeriodicColumns():
			ix = 1 + (ix-1+p.mesh.NX-2)%(p.mesh.NX-2)
		}
		if part.file != nil {
			dst[i] = p.get(file[(ix-lo)*size:])
			continue
		}
		v, err := p.value(part, &s, row, ix)
		if err != nil {
			return err
		}
		dst[i] = v
	}
	return nil
}
