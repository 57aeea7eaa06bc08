package rank

import (
	"context"
	"runtime"

	"jacobi/internal/base/ballast"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// prepared is the problem of the job.
type prepared struct {
	problem *problem.Problem
	planned map[string]string // contents of its files; nil where nobody has planned the job
}

// prepare evaluates this rank's part of the initial field, and returns what the ranks agree on.
func (r *run) prepare(ctx context.Context) (share roster.Share, err error) {
	if r.Check != nil && r.Origin.Rank == 0 && r.Task == nil {
		job, err := r.Check(ctx, r.Config)
		if err != nil {
			return share, err
		}
		r.planned = job.Contents
	}
	if r.problem, err = problem.New(ctx, r.Config); err != nil {
		return share, err
	}
	r.open.add(r.problem.Close)
	r.problem.OnWork(r.comm.Worked)
	if r.problem.Weighted() && !r.Ordered { // the first pass over the rows fills a small heap every few rows
		b := ballast.New()
		defer runtime.KeepAlive(b)
	}
	if share.Part, err = r.evaluate(ctx); err != nil {
		return share, err
	}
	if !r.idle() {
		mesh := r.problem.Mesh()
		share.Device, share.Depth, share.MaxSweeps = r.deviceName(), r.preferredDepth(mesh), r.maxPassSweeps(mesh)
	}
	if r.planned == nil && r.Origin.Rank == 0 {
		if r.planned, err = r.problem.Contents(ctx); err != nil {
			return share, err
		}
	}
	share.Contents, err = r.problem.Share(ctx, r.Origin.Rank, r.Origin.Size)
	return share, err
}

// unite returns the contents of the files that all ranks have read, on rank 0.
func (r *run) unite(ctx context.Context, shares []roster.Share) (problem.Sums, error) {
	var sums []problem.Sums
	for _, s := range shares {
		sums = append(sums, s.Contents)
	}
	return r.problem.Unite(ctx, sums, r.planned, func(rank int) string { return r.comm.Member(rank).String() })
}

// evaluate evaluates this rank's part of the rows, which the ranks divide without regard to the method: a checkpoint
// may still choose that.
func (r *run) evaluate(ctx context.Context) (roster.Part, error) {
	interior := r.problem.Mesh().Interior()
	parts := min(r.Origin.Size, solver.MaxRanks(interior, 1))
	if r.Origin.Rank >= parts {
		return roster.Part{}, nil
	}
	stripes, err := solver.Partition(interior, parts, 1)
	if err != nil {
		return roster.Part{}, err
	}
	return partOf(ctx, r.problem, stripes[r.Origin.Rank])
}

// partOf evaluates the rows of a stripe and those beside it.
func partOf(ctx context.Context, p *problem.Problem, s solver.Stripe) (part roster.Part, err error) {
	part.MaxGuess, part.MaxAbs, err = p.MaxGuess(ctx, max(s.Lo-1, 0), min(s.Hi+1, p.Mesh().NY))
	if err != nil {
		return part, err
	}
	m, err := p.Maxima(ctx, s.Lo, s.Hi)
	if err != nil {
		return part, err
	}
	part.MaxSource, part.Diagonal = m.Source, m.Diagonal
	part.Centre, part.Barrier, part.Open = m.Centre, m.Barrier, m.Open
	part.Fixed, err = p.CountFixed(ctx, s.Lo, s.Hi)
	return part, err
}
