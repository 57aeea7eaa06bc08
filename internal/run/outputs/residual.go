package outputs

import (
	"context"
	"fmt"
	"math"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

// squares are sums of squares over the rows of a rank.
type squares struct {
	Residual results.Sum `json:"residual"` // of b - A u
	Right    results.Sum `json:"right"`    // of b
}

// residual returns the residual of a weighted operator. Its norm does not tell that, as the diagonal of the equations
// differs between points, so the rows are read once more. It returns nil on other ranks than rank 0. All ranks call it.
func (o *Outputs) residual(ctx context.Context, view output.View) (*output.ResidualReport, error) {
	s := &source{Outputs: o, view: view}
	if err := s.meet(ctx); err != nil {
		return nil, err
	}
	own, err := s.squares(ctx)
	if err != nil {
		return nil, fmt.Errorf("residual: %w", err)
	}
	all, err := roster.GatherOn(ctx, o.Comm, "residual", own)
	if err != nil || all == nil {
		return nil, err
	}
	var total squares
	for _, part := range all {
		total.Residual.Merge(&part.Residual)
		total.Right.Merge(&part.Right)
	}
	return output.NewResidual(math.Sqrt(total.Residual.Value()), math.Sqrt(total.Right.Value()), 1), nil
}

// squares adds those of the rows of the stripe.
func (s *source) squares(ctx context.Context) (total squares, err error) {
	stripe, chunk := s.Layout.Stripe, max(1, arrayChunk/s.Layout.Mesh.RowBytes())
	for lo := stripe.Lo; lo < stripe.Hi; lo += chunk {
		hi := min(lo+chunk, stripe.Hi)
		rows, err := s.field(ctx, lo-1, hi+1)
		if err != nil {
			return total, err
		}
		sums := make([][2]float64, hi-lo)
		err = parallel.Each(len(sums), func(i int) (err error) {
			sums[i][0], sums[i][1], err = s.Problem.Residual(lo+i, rows[i], rows[i+1], rows[i+2])
			return err
		})
		if err != nil {
			return total, err
		}
		for _, sum := range sums {
			total.Residual.Add(sum[0])
			total.Right.Add(sum[1])
		}
	}
	return total, nil
}
