package rank

import (
	"context"

	"jacobi/internal/device"
	"jacobi/internal/problem"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// prepared is a rank that knows its part of the problem and the devices of its node.
type prepared struct {
	*started
	problem   *problem.Problem
	gpus      *device.Node // WhyCPU is nil if a GPU sweeps
	part      roster.Part  // of this rank
	firstRows string       // hash of rows of the problem, which the ranks compare
}

// prepare evaluates this rank's part of the initial field and opens the devices of its node.
func (s *started) prepare(ctx context.Context, open *closers) (*prepared, error) {
	field, err := problem.New(s.Config)
	if err != nil {
		return nil, err
	}
	open.add(field.Close)
	if !s.launched() && s.Origin.Rank == 0 { // a launcher gives these warnings itself
		for _, text := range field.Warnings() {
			s.Log.Warn(text)
		}
	}
	stripes, err := solver.Partition(field.Mesh().Interior(), s.Origin.Size, max(1, s.Config.HaloDepth(s.Origin.Size)))
	if err != nil {
		return nil, err
	}
	gpus, err := s.openGPUs()
	if err != nil {
		return nil, err
	}
	open.add(gpus.Close)
	part, err := partOf(ctx, field, stripes[s.Origin.Rank])
	if err != nil {
		return nil, err
	}
	firstRows, err := field.RowsHash(ctx)
	if err != nil {
		return nil, err
	}
	return &prepared{started: s, problem: field, gpus: gpus, part: part, firstRows: firstRows}, nil
}

// partOf evaluates the rows of a stripe and those beside it.
func partOf(ctx context.Context, p *problem.Problem, s solver.Stripe) (part roster.Part, err error) {
	if part.MaxAbs, err = p.MaxAbs(ctx, max(s.Lo-1, 0), min(s.Hi+1, p.Mesh().NY)); err != nil {
		return part, err
	}
	if part.MaxSource, err = p.MaxSource(ctx, s.Lo, s.Hi); err != nil {
		return part, err
	}
	part.Fixed, err = p.CountFixed(ctx, s.Lo, s.Hi)
	return part, err
}
