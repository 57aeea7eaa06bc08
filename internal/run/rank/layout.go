package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/method"
	"jacobi/internal/run/setup"
	"jacobi/internal/run/tune"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// prepared is the problem of the job.
type prepared struct {
	problem *problem.Problem
	planned map[string]string // contents of its files; nil where nobody has planned the job
	survey  problem.Survey    // of the rows that this rank has evaluated
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
	if r.values == nil {
		r.values = r.knownValues()
	}
	if r.problem, err = problem.Valued(ctx, r.Config, r.values); err != nil {
		return share, err
	}
	share.Values = r.values
	r.open.add(r.problem.Close)
	r.problem.OnWork(r.comm.Worked)
	if share.Part, err = r.evaluate(ctx); err != nil {
		return share, err
	}
	if !r.idle() {
		mesh := r.problem.Mesh()
		share.Device = string(r.device())
		share.Depth, share.MaxSweeps = r.device().Passes(mesh, r.problem.Operator(),
			solver.MinRows(mesh.Interior(), r.working), r.Config.Solver.NormEvery)
	}
	if r.planned == nil && r.Origin.Rank == 0 {
		if r.planned, err = r.problem.Contents(ctx); err != nil {
			return share, err
		}
	}
	if share.Islands, err = json.Marshal(r.survey); err != nil {
		return share, err
	}
	share.Contents, err = r.problem.Share(ctx, r.Origin.Rank, r.Origin.Size)
	return share, err
}

// unite returns the contents of the files that all ranks have read, and what they have surveyed, on rank 0.
func (r *run) unite(ctx context.Context, shares []roster.Share) (u united, err error) {
	var sums []problem.Sums
	for _, s := range shares {
		sums = append(sums, s.Contents)
	}
	u.Contents, err = r.problem.Unite(ctx, sums, r.planned, func(rank int) string {
		return r.comm.Member(rank).String()
	})
	if !slices.ContainsFunc(shares, func(s roster.Share) bool { return !slices.Equal(s.Values, r.values) }) {
		u.Values = r.values
	}
	if err == nil {
		u.Islands, u.Taken, err = r.uniteSurveys(shares)
	}
	return u, err
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
	return r.partOf(ctx, stripes[r.Origin.Rank])
}

// partOf evaluates the rows of a stripe and those beside it.
func (r *run) partOf(ctx context.Context, s solver.Stripe) (part roster.Part, err error) {
	p := r.problem
	part.MaxGuess, part.MaxAbs, err = p.MaxGuess(ctx, max(s.Lo-1, 0), min(s.Hi+1, p.Mesh().NY))
	if err != nil {
		return part, err
	}
	if r.survey, err = p.Survey(ctx, s.Lo, s.Hi); err != nil {
		return part, err
	}
	m := r.survey.Maxima
	part.MaxSource, part.Diagonal = m.Source, m.Diagonal
	part.Centre, part.Barrier, part.Open = m.Centre, m.Barrier, m.Open
	part.Fixed = r.survey.Fixed
	return part, nil
}

// divided is a run whose mesh is divided among the ranks.
type divided struct {
	*run
	*setup.Setup
	layout  solver.Layout // of this rank
	fixed   int64         // points that problem.fixed fixes, in the whole mesh
	balance tune.Balance
}

// layOut computes the set-up from the values with which all ranks joined and, for halo.depth auto, from the time that
// links between nodes take.
func (r *run) layOut(ctx context.Context) (*divided, error) {
	whole := r.whole()
	r.problem.SetMaxima(problem.Maxima{Diagonal: whole.Diagonal, Centre: whole.Centre, Barrier: whole.Barrier})
	if err := r.checkWhole(); err != nil {
		return nil, err
	}
	ranks := tune.Ranks{Comm: r.comm, Config: r.Config, Log: r.Log, Mesh: r.problem.Mesh(), OnGPU: r.sweepsOnGPU(),
		CPU: r.cpuOptions(), Divide: r.divide}
	depth, err := ranks.Depth(ctx)
	if err != nil {
		return nil, err
	}
	b, err := ranks.Balance(ctx, depth)
	if err != nil {
		return nil, err
	}
	c := r.Config.Solver
	s, err := r.divide(setup.Options{Depth: depth, Weights: b.Weights, Method: c.Entry(), Norms: c.Norms(),
		ReachAll: reachAll(r.comm.Members(), r.Config.Halo.Transport)})
	if err != nil {
		return nil, err
	}
	if b.Why != "" && r.id.Rank == 0 {
		r.Log.Info(b.Text(s.Stripes))
	}
	d := &divided{run: r, Setup: s, layout: s.Layout(r.id.Rank), fixed: whole.Fixed, balance: b}
	d.layout.Magnitude = r.magnitude(whole)
	return d, nil
}

// whole returns what the ranks have found in the whole problem, and what the source may have gained since.
func (r *run) whole() roster.Part {
	w := r.comm.Whole()
	w.MaxSource += r.problem.Surplus()
	return w
}

// checkWhole checks what the ranks have found in the whole problem.
func (r *run) checkWhole() error {
	whole := r.whole()
	if err := r.problem.CheckFixed(whole.Fixed); err != nil {
		return err
	}
	if err := r.problem.CheckMagnitude(max(whole.MaxAbs, whole.MaxGuess), whole.MaxSource); err != nil {
		return err
	}
	return r.problem.CheckGuess(whole.MaxGuess, whole.MaxAbs, r.problem.Driven(whole.MaxSource))
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

// equipped is a run whose method is open on this rank's device.
type equipped struct {
	*divided
	method method.Method
}

// openMethod chooses this rank's GPU, if one sweeps, and opens the method.
func (r *divided) openMethod(ctx context.Context) (*equipped, error) {
	if !r.taken { // a session takes its GPU once
		if err := r.takeGPU(ctx); err != nil {
			return nil, err
		}
	}
	o := method.Options{Setup: r.Setup, Layout: r.layout, Rank: r.id.Rank, Comm: r.comm,
		CPU: r.cpuOptions(), Timeout: r.fileTimeout(), Room: r.room, OnClose: r.open.add}
	if r.sweepsOnGPU() {
		o.Driver = r.gpus.Driver
		o.GPU = cuda.Options{Device: r.chosen.Index, Sole: r.sole, Timeout: r.Config.Halo.Timeout}
	}
	opened, err := method.Open(ctx, o)
	return &equipped{divided: r, method: opened}, err
}

// room fails unless each rank of this node may take so many bytes of its memory besides.
func (r *run) room(bytes int64) error {
	if err := configs.CheckMemory(int64(r.id.LocalSize) * bytes); err != nil {
		return fmt.Errorf("%w; take a smaller grid, fewer ranks on a machine, or more machines", err)
	}
	return nil
}

// cpuOptions returns the options of a device that is the CPU.
func (r *run) cpuOptions() cpu.Options {
	o := cpu.Options{Threads: r.threads(), Kernel: r.Config.Device.Kernel, ThreadsPerCore: r.threadsPerCore()}
	if o.Kernel == "auto" {
		o.Kernel = "" // the best
	}
	return o
}
