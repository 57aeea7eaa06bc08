package rank

import (
	"context"
	"math"

	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/internal/run/tune"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// division is how the mesh is divided among the ranks.
type division struct {
	*setup.Setup
	layout   solver.Layout // of this rank
	fixed    int64         // points that problem.fixed fixes, in the whole mesh
	balance  tune.Balance
	measured *tune.Deepening // see tune.Ranks.Depth
}

// layOut computes the set-up from the values with which all ranks joined and, for halo.depth auto, from the time that
// links between nodes take.
func (r *run) layOut(ctx context.Context) error {
	whole := r.comm.Whole()
	r.problem.SetMaxima(problem.Maxima{Diagonal: whole.Diagonal, Centre: whole.Centre, Barrier: whole.Barrier})
	if err := r.problem.CheckFixed(whole.Fixed); err != nil {
		return err
	}
	if err := r.problem.CheckMagnitude(max(whole.MaxAbs, whole.MaxGuess), whole.MaxSource); err != nil {
		return err
	}
	if err := r.problem.CheckGuess(whole.MaxGuess, whole.MaxAbs, r.problem.Driven(whole.MaxSource)); err != nil {
		return err
	}
	ranks := tune.Ranks{Comm: r.comm, Config: r.Config, Log: r.Log, Mesh: r.problem.Mesh(), OnGPU: r.sweepsOnGPU(),
		CPU: r.cpuOptions(), Divide: r.divide}
	depth, measured, err := ranks.Depth(ctx)
	if err != nil {
		return err
	}
	b, err := ranks.Balance(ctx, depth)
	if err != nil {
		return err
	}
	c := r.Config.Solver
	s, err := r.divide(setup.Options{Depth: depth, Weights: b.Weights, Method: c.Entry(), Norms: c.Norms(),
		ReachAll: r.reachAll()})
	if err != nil {
		return err
	}
	if b.Why != "" && r.id.Rank == 0 {
		r.Log.Info(b.Text(s.Stripes))
	}
	r.division = division{Setup: s, layout: s.Layout(r.id.Rank), fixed: whole.Fixed, balance: b, measured: measured}
	r.layout.Magnitude = r.magnitude(whole)
	return nil
}

// divide returns the set-up of the ranks with what o leaves open.
func (r *run) divide(o setup.Options) (*setup.Setup, error) {
	o.Mesh, o.Operator, o.Ranks, o.MaxSweeps = r.problem.Mesh(), r.problem.Operator(), r.id.Size, math.MaxInt
	for _, g := range r.comm.Groups() {
		o.MaxSweeps = min(o.MaxSweeps, g.First.MaxSweeps)
	}
	return setup.New(o)
}

// magnitude returns the unit of the sums. After a cycle of multigrid the field may be about the solution, and an update
// beside a fixed point as large as that. Nor are updates much larger, in the L2 norm, than the first one divided by the
// root of the least eigenvalue, since cycles make the energy of the error smaller: a factor of 4 leaves room. Those
// of a weighted operator may be: see multigrid.WeightedHeadroom.
func (r *run) magnitude(whole roster.Part) solver.Magnitude {
	largest := max(whole.MaxAbs, whole.MaxGuess)
	if m := r.problem.Mesh(); r.Config.Solver.Entry().Levels {
		points := float64(m.NX) * float64(m.NY)
		least := r.problem.LeastEigenvalue()
		walls := largest
		largest += min(r.problem.Driven(whole.MaxSource), 4*math.Sqrt(points/least)*(2*largest+whole.MaxSource))
		if r.problem.Operator().Weighted {
			largest = max(largest, math.Ldexp(walls, multigrid.WeightedHeadroom))
		}
	}
	return r.problem.Magnitude(largest, whole.MaxSource)
}

// neighbour returns the entry of the rank at the given side. The ranks form a ring, which a mesh that is not periodic
// does not close.
func (m *membership) neighbour(side solver.Side) roster.Member {
	return m.comm.Member((m.id.Rank + 2*int(side) - 1 + m.id.Size) % m.id.Size)
}
