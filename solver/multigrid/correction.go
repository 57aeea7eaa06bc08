package multigrid

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"jacobi/internal/base/parallel"
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

// largestOf returns the largest of absolute values and one more.
func largestOf(largest float64, values []float64) float64 {
	for _, v := range values {
		if v = math.Abs(v); !(v <= largest) {
			largest = v
		}
	}
	return largest
}

// Correction returns the largest absolute value of the correction of level 1, once the run has ended: how much the rest
// of the cycle would change the field, but for its sweeps there. That tells how far the field is from the solution.
// Only the rows that belong to those that this rank owns count.
func Correction(ctx context.Context, d Device, l Layout) (float64, error) {
	rows, mesh := l.Below(), l.Plan.Levels[1].Mesh
	largest, size := 0.0, mesh.RowBytes()
	chunk := max(1, copied/size)
	data := make([]byte, min(chunk, rows.Rows())*size)
	each := make([]float64, min(chunk, rows.Rows())) // the largest of each row
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		s := solver.Stripe{Lo: lo, Hi: min(lo+chunk, rows.Hi)}
		if err := d.CopyRows(ctx, 1, Unknowns, s, data[:s.Rows()*size]); err != nil {
			return 0, fmt.Errorf("correction: %w", err)
		}
		parts := min(s.Rows(), runtime.GOMAXPROCS(0))
		_ = parallel.Each(parts, func(k int) error { // never fails
			values := make([]float64, mesh.NX)
			for i := s.Rows() * k / parts; i < s.Rows()*(k+1)/parts; i++ {
				mesh.DType.Decode(values, data[i*size:][:size])
				each[i] = largestOf(0, values)
			}
			return nil
		})
		largest = largestOf(largest, each[:s.Rows()])
	}
	return math.Ldexp(largest, int(l.Magnitude)), nil
}
