package multigrid

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
)

// Correction returns the largest absolute value of the correction of level 1 after the end of the run, which estimates
// the error of the field. Only the rows that belong to those that this rank owns count.
func Correction(ctx context.Context, d Device, l Layout) (float64, error) {
	largest, err := largestIn(l.Plan.Levels[1].Mesh, l.Below(), func(s solver.Stripe, dst []byte) error {
		return d.CopyRows(ctx, 1, Unknowns, s, dst)
	})
	if err != nil {
		return 0, fmt.Errorf("correction: %w", err)
	}
	return math.Ldexp(largest, int(l.Magnitude)), nil
}

// Change returns the largest absolute value of the last change of the field by conjugate gradients, in the rows that
// this rank owns. It is 0 before the first cycle with them.
func Change(ctx context.Context, g CG, l Layout) (float64, error) {
	largest, err := largestIn(l.Plan.Levels[0].Mesh, l.Stripes[0], func(s solver.Stripe, dst []byte) error {
		return g.CopyRows(ctx, s, dst)
	})
	if err != nil {
		return 0, fmt.Errorf("last change: %w", err)
	}
	return largest, nil
}

// largestIn returns the largest absolute value in rows of a mesh, which read copies; NaN if one is NaN.
func largestIn(mesh solver.Mesh, rows solver.Stripe, read reader) (largest float64, err error) {
	each, err := ofRows(mesh, rows, read, func(values []float64) (largest float64) {
		for _, v := range values {
			if v = math.Abs(v); v > largest || math.IsNaN(v) {
				largest = v
			}
		}
		return largest
	})
	for _, v := range each {
		largest = max(largest, v)
	}
	return largest, err
}
