package multigrid

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
)

// A norm of at most floorFactor times 2^-53 times the L2 norm of the field is what rounding leaves. The update of a
// point is the difference of values about as large as that point, each with an error of half a unit in the last place.
const floorFactor = 16

// headroom is by how many powers of two the field may exceed the magnitude of the run while floor measures it.
const headroom = 33

// floor returns the largest norm that rounding may leave of the present field, the same on all ranks; base
// is that of the goal. A run needs it only where its norms no longer fall, so the field is copied to the host.
func (it *Iteration) floor(ctx context.Context, base float64) (float64, error) {
	mesh, rows, e := it.Layout.Plan.Levels[0].Mesh, it.Layout.Stripes[0], it.Layout.Magnitude+headroom
	var sum solver.Sum
	row, values := make([]byte, mesh.RowBytes()), make([]float64, mesh.NX)
	for y := rows.Lo; y < rows.Hi; y++ {
		if err := it.Device.CopyRows(ctx, 0, Unknowns, solver.Stripe{Lo: y, Hi: y + 1}, row); err != nil {
			return 0, fmt.Errorf("floor of rounding: %w", err)
		}
		mesh.DType.Decode(values, row)
		for _, v := range values {
			sum.Add(v*v, e)
		}
	}
	total, err := it.sums.Total(ctx, solver.Contribution{Sums: []solver.Sum{sum}})
	if err != nil {
		return 0, fmt.Errorf("floor of rounding: %w", err)
	}
	largest := math.Hypot(total.Sums[0].Norm(e), base) // base has what walls and source add to an update
	return floorFactor * 0x1p-53 * largest, nil
}
