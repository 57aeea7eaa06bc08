package outputs

import (
	"context"
	"fmt"
	"math"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/internal/compute/results"
	"jacobi/internal/observe/output"
)

// residuals are sums over the rows of a rank: see problem.Residual.
type residuals struct {
	Squares results.Sum `json:"squares"`
	Right   results.Sum `json:"right"`
	Sum     results.Sum `json:"sum"`
	Hold    results.Sum `json:"hold"`
}

// residuals adds those of the rows of the stripe, which are read once more.
func (s *source) residuals(ctx context.Context) (*residuals, error) {
	total := new(residuals)
	stripe, chunk := s.Layout.Stripe, max(1, arrayChunk/s.Layout.Mesh.RowBytes())
	for lo := stripe.Lo; lo < stripe.Hi; lo += chunk {
		hi := min(lo+chunk, stripe.Hi)
		rows, err := s.field(ctx, lo-1, hi+1)
		if err != nil {
			return nil, err
		}
		sums := make([]problem.Residual, hi-lo)
		err = parallel.Each(len(sums), func(i int) (err error) {
			sums[i], err = s.Problem.Residual(lo+i, rows[i], rows[i+1], rows[i+2])
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("residual: %w", err)
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

// merge adds the sums of another rank; nil stands for none.
func (r *residuals) merge(o *residuals) *residuals {
	if r == nil || o == nil {
		return o
	}
	r.Squares.Merge(&o.Squares)
	r.Right.Merge(&o.Right)
	r.Sum.Merge(&o.Sum)
	r.Hold.Merge(&o.Hold)
	return r
}

// report returns the residual of a weighted operator, and by how much all values together are off: with that added, the
// residuals would add up to 0. The norm does not tell either, as the diagonal of the equations differs between points.
func (r *residuals) report() (rep *output.ResidualReport, off float64) {
	if hold := r.Hold.Value(); hold > 0 {
		off = math.Abs(r.Sum.Value()) / hold
	}
	return output.NewResidual(math.Sqrt(r.Squares.Value()), math.Sqrt(r.Right.Value()), 1), off
}
