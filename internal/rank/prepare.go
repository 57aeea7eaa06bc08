package rank

import (
	"context"

	"jacobi/internal/device"
	"jacobi/internal/problem"
	"jacobi/solver"
)

// prepared is a rank that knows its part of the problem and the devices of its node.
type prepared struct {
	*started
	problem   *problem.Problem
	gpus      *device.Node // WhyCPU is nil if a GPU sweeps
	maxAbs    float64      // the largest absolute value of this rank's part of the initial field
	firstRows string       // hash of rows of the initial field, which the ranks compare
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
	stripes, err := solver.Partition(field.Mesh().Interior(), s.Origin.Size, max(1, s.Config.Halo.Depth))
	if err != nil {
		return nil, err
	}
	gpus, err := s.openGPUs()
	if err != nil {
		return nil, err
	}
	open.add(gpus.Close)
	stripe := stripes[s.Origin.Rank]
	maxAbs, err := field.MaxAbs(ctx, stripe.Lo-1, stripe.Hi+1)
	if err != nil {
		return nil, err
	}
	firstRows, err := field.RowsHash(ctx)
	if err != nil {
		return nil, err
	}
	return &prepared{started: s, problem: field, gpus: gpus, maxAbs: maxAbs, firstRows: firstRows}, nil
}
