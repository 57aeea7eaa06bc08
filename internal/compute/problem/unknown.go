package problem

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"jacobi/internal/base/parallel"
)

// unknown returns a warning with the number of free points at which the file of problem.initial has NaN, which begin
// with 0; "" without one, or if ctx ends before.
func (p *Problem) unknown(ctx context.Context) string {
	if p.initial.file == nil {
		return ""
	}
	var points atomic.Int64
	interior := p.mesh.Interior()
	lo, hi := p.mesh.InteriorColumns()
	err := parallel.Each(interior.Rows(), func(i int) error {
		iy, size := interior.Lo+i, p.mesh.DType.Size()
		row, keeps := make([]byte, (hi-lo)*size), []bool(nil)
		if err := p.initial.file.read(row, iy, lo); err != nil || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		p.worked()
		for ix := lo; ix < hi; ix++ {
			if v := valueAt(p.mesh.DType, row[(ix-lo)*size:]); v == v {
				continue
			}
			if keeps == nil {
				keeps = make([]bool, p.mesh.NX)
				if err := p.FixedRow(iy, keeps); err != nil {
					return err
				}
			}
			if !keeps[ix] {
				points.Add(1)
			}
		}
		return nil
	})
	if err != nil || points.Load() == 0 { // who reads the file for the run reports the error
		return ""
	}
	return fmt.Sprintf("%s %q: NaN at %d free points, which begin with 0", p.initial.key, p.initial.text, points.Load())
}
