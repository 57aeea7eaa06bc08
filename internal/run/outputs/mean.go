package outputs

import (
	"context"
	"fmt"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// centred is the field of a loose problem minus its mean: the solution with the mean 0, as cycles do not determine the
// constant. The mean is added exactly, so it is the same for any number of ranks. Checkpoints keep the field as cycles
// have it.
type centred struct {
	solver.Rows
	problem *problem.Problem
	mean    float64
}

// center finds the present mean of the field, which CopyRows subtracts from then on. All ranks call it.
func (o *Outputs) center(ctx context.Context) error {
	f := o.centred
	if f == nil {
		return nil
	}
	s := o.Layout.Stripe
	sums, err := f.sums(ctx, s)
	if err != nil {
		return fmt.Errorf("mean of the field: %w", err)
	}
	f.mean, err = roster.DecideOn(ctx, o.Comm, "mean", sums, func(parts []meanPart) (float64, error) {
		var all meanPart
		for i := range parts {
			all.Sum.Merge(&parts[i].Sum)
			all.Quarters += parts[i].Quarters
		}
		return all.Sum.Over(all.Quarters), nil
	})
	return err
}

// meanPart is the sum over the points of a rank, each counted as often as quarters of a cell belong to it.
type meanPart struct {
	Sum      results.Sum `json:"sum"`
	Quarters int64       `json:"quarters"`
}

// sums returns those of rows of the field.
func (f *centred) sums(ctx context.Context, s solver.Stripe) (all meanPart, err error) {
	m := f.problem.Mesh()
	chunk := max(1, arrayChunk/m.RowBytes())
	for lo := s.Lo; lo < s.Hi; lo += chunk {
		part := solver.Stripe{Lo: lo, Hi: min(lo+chunk, s.Hi)}
		data := make([]byte, part.Rows()*m.RowBytes())
		if err := f.Rows.CopyRows(ctx, part, data); err != nil {
			return all, err
		}
		rows := make([]problem.Mean, part.Rows())
		err := parallel.Each(len(rows), func(i int) (err error) {
			values := make([]float64, m.NX)
			m.DType.Decode(values, data[i*m.RowBytes():])
			rows[i], err = f.problem.MeanOf(part.Lo+i, values)
			return err
		})
		if err != nil {
			return all, err
		}
		for _, r := range rows {
			r.AddTo(&all.Sum)
			all.Quarters += r.Quarters
		}
	}
	return all, nil
}

// CopyRows implements solver.Rows.
func (f *centred) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if err := f.Rows.CopyRows(ctx, s, dst); err != nil {
		return err
	}
	m := f.problem.Mesh()
	return parallel.Each(s.Rows(), func(i int) error {
		row, values := dst[i*m.RowBytes():(i+1)*m.RowBytes()], make([]float64, m.NX)
		m.DType.Decode(values, row)
		outside := make([]bool, m.NX)
		if err := f.problem.OutsideRow(s.Lo+i, outside); err != nil {
			return err
		}
		for ix, out := range outside {
			if !out {
				values[ix] -= f.mean
			}
		}
		m.DType.Encode(row, values)
		return nil
	})
}

// centring centers the field before it is sampled.
type centring struct {
	solver.Sampler
	*Outputs
}

// Sample implements solver.Sampler.
func (c centring) Sample(ctx context.Context, at solver.Sample) error {
	within, cancel := c.within(ctx)
	defer cancel()
	if err := c.center(within); err != nil {
		return err
	}
	return c.Sampler.Sample(ctx, at)
}
