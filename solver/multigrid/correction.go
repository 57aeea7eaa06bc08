package multigrid

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
)

// rise completes the correction of level 1 after the first half of a cycle. The field stays as it is.
func (it *Iteration) rise(ctx context.Context) error {
	for l := it.Layout.Agglomerated - 1; l > 0; l-- {
		if err := it.lift(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// copied is about the number of bytes that Correction copies at a time.
const copied = 1 << 22

// Correction returns the largest absolute value of the correction of level 1, once the run has ended: how much the rest
// of the cycle would change the field, but for its sweeps there. That tells how far the field is from the solution.
// Only the rows that belong to those that this rank owns count.
func Correction(ctx context.Context, d Device, l Layout) (float64, error) {
	rows, mesh := l.Below(), l.Plan.Levels[1].Mesh
	largest, size := 0.0, mesh.RowBytes()
	chunk := max(1, copied/size)
	data, values := make([]byte, min(chunk, rows.Rows())*size), make([]float64, mesh.NX)
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		s := solver.Stripe{Lo: lo, Hi: min(lo+chunk, rows.Hi)}
		if err := d.CopyRows(ctx, 1, Unknowns, s, data[:s.Rows()*size]); err != nil {
			return 0, fmt.Errorf("correction: %w", err)
		}
		for i := range s.Rows() {
			mesh.DType.Decode(values, data[i*size:][:size])
			for _, v := range values {
				if v = math.Abs(v); !(v <= largest) {
					largest = v
				}
			}
		}
	}
	return math.Ldexp(largest, int(l.Magnitude)), nil
}
