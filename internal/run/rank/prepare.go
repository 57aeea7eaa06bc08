package rank

import (
	"context"
	"runtime"

	"jacobi/internal/base/ballast"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// prepared is this rank's part of the problem.
type prepared struct {
	problem   *problem.Problem
	part      roster.Part
	firstRows string            // hash of rows of the problem, which the ranks compare
	contents  map[string]string // of the files; nil but on the first rank of a node
}

// prepare evaluates this rank's part of the initial field.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.Check != nil && r.Origin.Rank == 0 && r.Task == nil {
		if err := r.Check(ctx, r.Config); err != nil {
			return err
		}
	}
	if r.problem, err = problem.New(ctx, r.Config); err != nil {
		return err
	}
	r.open.add(r.problem.Close)
	if r.problem.Weighted() && !r.Ordered { // the first pass over the rows fills a small heap every few rows
		b := ballast.New()
		defer runtime.KeepAlive(b)
	}
	if r.Origin.Rank == 0 || r.Origin.LocalRank <= 0 { // -1: not known before the join
		if r.contents, err = r.problem.Contents(ctx); err != nil {
			return err
		}
	}
	if r.part, err = r.evaluate(ctx); err != nil {
		return err
	}
	r.firstRows, err = r.problem.RowsHash(ctx)
	return err
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
