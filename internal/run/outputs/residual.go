package outputs

import (
	"context"
	"fmt"
	"math"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

// residuals are sums over the rows of a rank: see problem.Residual.
type residuals struct {
	Squares results.Sum `json:"squares"`
	Right   results.Sum `json:"right"`
	Sum     results.Sum `json:"sum"`
	Hold    results.Sum `json:"hold"`
}

// residual returns the residual of a weighted operator, and by how much all values together are off: with that added,
// the residuals would add up to 0. The norm does not tell either, as the diagonal of the equations differs between
// points, so the rows are read once more. It returns nil on other ranks than rank 0. All ranks call it.
func (o *Outputs) residual(ctx context.Context, view output.View) (rep *output.ResidualReport, off float64, err error) {
	s := &source{Outputs: o, view: view}
	if err := s.meet(ctx); err != nil {
		return nil, 0, err
	}
	own, err := s.residuals(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("residual: %w", err)
	}
	all, err := roster.GatherOn(ctx, o.Comm, "residual", own)
	if err != nil || all == nil {
		return nil, 0, err
	}
	var total residuals
	for _, part := range all {
		total.Squares.Merge(&part.Squares)
		total.Right.Merge(&part.Right)
		total.Sum.Merge(&part.Sum)
		total.Hold.Merge(&part.Hold)
	}
	if hold := total.Hold.Value(); hold > 0 {
		off = math.Abs(total.Sum.Value()) / hold
	}
	return output.NewResidual(math.Sqrt(total.Squares.Value()), math.Sqrt(total.Right.Value()), 1), off, nil
}

// residuals adds those of the rows of the stripe.
func (s *source) residuals(ctx context.Context) (total residuals, err error) {
	stripe, chunk := s.Layout.Stripe, max(1, arrayChunk/s.Layout.Mesh.RowBytes())
	for lo := stripe.Lo; lo < stripe.Hi; lo += chunk {
		hi := min(lo+chunk, stripe.Hi)
		rows, err := s.field(ctx, lo-1, hi+1)
		if err != nil {
			return total, err
		}
		sums := make([]problem.Residual, hi-lo)
		err = parallel.Each(len(sums), func(i int) (err error) {
			sums[i], err = s.Problem.Residual(lo+i, rows[i], rows[i+1], rows[i+2])
			return err
		})
		if err != nil {
			return total, err
		}
		for _, sum := range sums {
			total.Squares.Add(sum.Squares)
			total.Right.Add(sum.Right)
			total.Sum.Add(sum.Sum)
			total.Hold.Add(sum.Hold)
		}
	}
	return total, nil
}
