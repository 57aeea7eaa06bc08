package rank

import (
	"jacobi/internal/roster"
	"jacobi/solver"
)

// laidOut is a rank that knows its stripe.
type laidOut struct {
	*joined
	plan
	fixed int64 // points that problem.fixed fixes, in the whole mesh
}

// plan divides the mesh among the ranks.
type plan struct {
	stripes    []solver.Stripe // of all ranks
	layout     solver.Layout   // of this rank
	passSweeps int             // largest number of sweeps in a pass
	ahead      int             // see solver.PassesAhead
}

// layOut computes the plan from the values with which all ranks joined.
func (j *joined) layOut() (*laidOut, error) {
	members := j.team.Members()
	whole, err := wholeOf(members)
	if err != nil {
		return nil, err
	}
	if err := j.problem.CheckFixed(whole.Fixed); err != nil {
		return nil, err
	}
	if err := j.problem.CheckMagnitude(whole.MaxAbs, whole.MaxSource); err != nil {
		return nil, err
	}
	p, err := newPlan(j.problem.Mesh(), j.Config.HaloDepth(j.id.Size), j.id.Rank, members)
	if err != nil {
		return nil, err
	}
	if j.Config.Solver.Multigrid() {
		p.forCycles()
	}
	p.layout.Operator = j.problem.Operator()
	p.layout.Magnitude = j.problem.Magnitude(whole.MaxAbs, whole.MaxSource)
	return &laidOut{joined: j, plan: p, fixed: whole.Fixed}, nil
}

// newPlan returns the plan of the given rank, without the operator and the magnitude. depth is halo.depth, or 0 for
// auto.
func newPlan(mesh solver.Mesh, depth, rank int, members []roster.Member) (plan, error) {
	size := len(members)
	if depth == 0 {
		depth = chooseDepth(members, solver.MinRows(mesh.Interior(), size))
	}
	stripes, err := solver.Partition(mesh.Interior(), size, depth)
	if err != nil {
		return plan{}, err
	}
	p := plan{stripes: stripes, passSweeps: depth, layout: solver.Layout{
		Mesh: mesh, Stripe: stripes[rank], Depth: depth,
		Neighbour: [2]bool{solver.Top: rank > 0 || mesh.PeriodicRows(),
			solver.Bottom: rank < size-1 || mesh.PeriodicRows()},
	}}
	for _, m := range members {
		p.passSweeps = min(p.passSweeps, m.MaxSweeps)
	}
	p.ahead = solver.PassesAhead(mesh, stripes, p.passSweeps)
	return p, nil
}

// chooseDepth returns the depth for halo.depth auto: the least depth that any rank's backend prefers, at most the rows
// of the lowest stripe.
func chooseDepth(members []roster.Member, minRows int) int {
	depth := minRows
	for _, m := range members {
		depth = min(depth, m.Depth)
	}
	return max(1, depth)
}

// wholeOf combines the parts of all ranks.
func wholeOf(members []roster.Member) (whole problemPart, err error) {
	for _, m := range members {
		e, err := extraOf(m)
		if err != nil {
			return whole, err
		}
		whole.MaxAbs = max(whole.MaxAbs, m.MaxAbs)
		whole.MaxSource = max(whole.MaxSource, e.MaxSource)
		whole.Fixed += e.Fixed
	}
	return whole, nil
}

// neighbour returns the entry of the rank at the given side. The ranks form a ring, which a mesh that is not periodic
// does not close.
func (l *laidOut) neighbour(side solver.Side) roster.Member {
	return l.team.Members()[(l.id.Rank+2*int(side)-1+l.id.Size)%l.id.Size]
}
