package multigrid

import (
	"context"
	"fmt"
	"math"
)

// Correction returns the largest absolute value of the correction of level 1 after the end of the run, which estimates
// the error of the field. Only the rows that belong to those that this rank owns count.
func Correction(ctx context.Context, d Device, l Layout) (float64, error) {
	largest, err := d.Largest(ctx, 1, l.Below())
	if err != nil {
		return 0, fmt.Errorf("correction: %w", err)
	}
	return math.Ldexp(largest, int(l.Magnitude)), nil
}

// Change returns the largest absolute value of the last change of the field by conjugate gradients, in the rows that
// this rank owns. It is 0 before the first cycle with them.
func Change(ctx context.Context, g CG, l Layout) (float64, error) {
	largest, err := g.Largest(ctx, l.Stripes[0])
	if err != nil {
		return 0, fmt.Errorf("last change: %w", err)
	}
	return largest, nil
}
