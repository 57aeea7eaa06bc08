package rank

import (
	"context"

	"jacobi/internal/roster"
	"jacobi/solver"
	"jacobi/solver/chebyshev"
)

// laidOut is a rank that knows its stripe.
type laidOut struct {
	*joined
	plan
	fixed    int64  // points that problem.fixed fixes, in the whole mesh
	whyDepth string // see haloDepth
	balance  balance
	measured *deepening // see findDepth
}

// plan divides the mesh among the ranks.
type plan struct {
	stripes    []solver.Stripe // of all ranks
	layout     solver.Layout   // of this rank
	passSweeps int             // largest number of sweeps in a pass
	ahead      int             // see solver.PassesAhead
	sums       int             // largest number of sums that are added over ranks at once
	chebyshev  *chebyshev.Plan // nil for other methods
}

// layOut computes the plan from the values with which all ranks joined and, for halo.depth auto, from the time that
// links between nodes take.
func (j *joined) layOut(ctx context.Context) (*laidOut, error) {
	whole := j.team.Whole()
	if err := j.problem.CheckFixed(whole.Fixed); err != nil {
		return nil, err
	}
	if err := j.problem.CheckMagnitude(whole.MaxAbs, whole.MaxSource); err != nil {
		return nil, err
	}
	depth, measured, err := j.findDepth(ctx)
	if err != nil {
		return nil, err
	}
	b, err := j.findBalance(ctx, depth)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(j.problem.Mesh(), depth, b.Weights, j.id, j.team.Groups())
	if err != nil {
		return nil, err
	}
	if b.Why != "" && j.id.Rank == 0 {
		j.Log.Info(b.text(p.stripes))
	}
	if j.Config.Solver.Multigrid() {
		p.forCycles()
	}
	p.layout.Operator = j.problem.Operator()
	if !j.Config.Solver.Multigrid() && !j.Config.Solver.Chebyshev() {
		p.layout.Norms = j.Config.Solver.Norms()
	}
	p.layout.Magnitude = j.magnitude(whole)
	if j.Config.Solver.Chebyshev() {
		if err := p.forChebyshev(j.Config.Solver.MaxIterations); err != nil {
			return nil, err
		}
	}
	return &laidOut{joined: j, plan: p, fixed: whole.Fixed, whyDepth: depth.Why, balance: b, measured: measured}, nil
}

// magnitude returns the unit of the sums. After a cycle of multigrid the field may be about the solution, and an update
// beside a fixed point as large as that: at most about the source divided by the least eigenvalue, for which a factor
// of 2 leaves room.
func (j *joined) magnitude(whole roster.Part) solver.Magnitude {
	largest := whole.MaxAbs
	if j.Config.Solver.Multigrid() {
		largest += 2 * whole.MaxSource / chebyshev.LeastOf(j.problem.Mesh(), j.problem.Operator().General())
	}
	return j.problem.Magnitude(largest, whole.MaxSource)
}

// newPlan returns the plan of rank id, without the operator and the magnitude. weights are those of the stripes; nil:
// they are equal.
func newPlan(mesh solver.Mesh, depth haloDepth, weights []float64, id roster.Identity,
	groups []roster.Group) (plan, error) {
	rank, size := id.Rank, id.Size
	stripes, err := solver.PartitionBy(mesh.Interior(), weights, size, depth.Rows)
	if err != nil {
		return plan{}, err
	}
	p := plan{stripes: stripes, passSweeps: depth.Sweeps, layout: solver.Layout{
		Mesh: mesh, Stripe: stripes[rank], Depth: depth.Rows,
		Neighbour: [2]bool{solver.Top: rank > 0 || mesh.PeriodicRows(),
			solver.Bottom: rank < size-1 || mesh.PeriodicRows()},
	}}
	for _, g := range groups {
		p.passSweeps = min(p.passSweeps, g.First.MaxSweeps)
	}
	p.ahead, p.sums = solver.PassesAhead(mesh, stripes, p.passSweeps), p.passSweeps
	return p, nil
}

// neighbour returns the entry of the rank at the given side. The ranks form a ring, which a mesh that is not periodic
// does not close.
func (l *laidOut) neighbour(side solver.Side) roster.Member {
	return l.team.Member((l.id.Rank + 2*int(side) - 1 + l.id.Size) % l.id.Size)
}
