// Package plan works out a run before it starts: which rank runs where, which rows and memory it gets, which GPU it
// takes, what the run would write, and what would make it fail.
package plan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/internal/cpu"
	"jacobi/internal/hosts"
	"jacobi/internal/output"
	"jacobi/internal/problem"
	"jacobi/solver"
	"jacobi/solver/chebyshev"
)

// Plan describes a run before it starts.
type Plan struct {
	Config configs.Config
	Mesh   solver.Mesh
	Title  string   // of the problem
	Notes  []string // warnings about the problem
	hosts.Places
	Devices
	Depth    int
	WhyDepth string
	Stripes  []solver.Stripe // by rank
	Memory   []int64         // bytes, by rank
	Saved    []int64         // bytes of a checkpoint, by rank

	Chebyshev *chebyshev.Plan // nil for other methods
}

// Make places the ranks of cfg as w says, and plans the run. While it waits for agents, it reports that to say.
func Make(ctx context.Context, cfg configs.Config, w hosts.Where, say func(string)) (*Plan, error) {
	if err := configs.Validate(cfg); err != nil { // before memory is allocated for each rank
		return nil, err
	}
	at, err := w.Place(ctx, cfg, say)
	if err != nil {
		return nil, err
	}
	return New(cfg, at)
}

// New plans the run of cfg on places. If it returns a plan together with an error, the run cannot start, but the plan's
// other parts can be checked for further faults.
func New(cfg configs.Config, at hosts.Places) (*Plan, error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, err
	}
	prob, bad := problem.New(cfg)
	if prob == nil {
		return nil, bad
	}
	mesh := prob.Mesh()
	devices, err := chooseDevices(cfg.Device, at)
	bad = errors.Join(bad, prob.Close(), err)
	depth, why := haloDepth(cfg, at, mesh, devices.OnGPUs)
	stripes, err := stripesOf(cfg.Run, mesh, depth)
	if err != nil {
		return nil, errors.Join(bad, err)
	}
	ranks := layouts(mesh, prob.Operator(), stripes, depth)
	weights, err := chebyshevOf(cfg.Solver, ranks)
	bad = errors.Join(bad, err)
	memory, err := rankMemory(cfg, at, ranks, devices.OnGPUs)
	if err != nil {
		return nil, errors.Join(bad, err)
	}
	saved := make([]int64, len(ranks))
	for r, l := range ranks {
		saved[r] = savedBytes(cfg.Solver, l)
	}
	return &Plan{Config: cfg, Mesh: mesh, Title: prob.Name(), Notes: prob.Warnings(), Places: at, Devices: devices,
		Depth: depth, WhyDepth: why, Stripes: stripes, Memory: memory, Saved: saved,
		Chebyshev: weights}, bad
}

// stripesOf returns the stripes of the ranks. With run.balance auto they are equal here: ranks may divide the mesh
// otherwise, by what they measure.
func stripesOf(r configs.Run, mesh solver.Mesh, depth int) ([]solver.Stripe, error) {
	weights, err := r.Weights()
	if err != nil {
		return nil, err
	}
	return solver.PartitionBy(mesh.Interior(), weights, r.Ranks, depth)
}

// Balance says how the stripes were divided; "" if they are equal.
func (p *Plan) Balance() string {
	switch p.Config.Run.Balance {
	case configs.BalanceEqual:
		return ""
	case configs.BalanceAuto:
		return "equal; run.balance auto: the ranks may take others, by the speeds that they measure"
	}
	return "in proportion to " + p.Config.Run.Balance + " (run.balance)"
}

// haloDepth returns the depth that the ranks will choose, and the reason. They may choose more, by what they measure of
// links between nodes.
func haloDepth(cfg configs.Config, at hosts.Places, mesh solver.Mesh, onGPUs bool) (depth int, why string) {
	if cfg.Solver.Multigrid() {
		return cfg.HaloDepth(cfg.Run.Ranks), "of solver.method multigrid"
	}
	if cfg.Halo.Depth > 0 {
		return cfg.Halo.Depth, "halo.depth"
	}
	low := solver.MinRows(mesh.Interior(), cfg.Run.Ranks)
	backend, depth := "CPU", cpu.PreferredDepth(mesh, low)
	if onGPUs {
		backend, depth = "CUDA", cuda.PreferredDepth(mesh, low, cfg.Solver.NormEvery)
	}
	why = fmt.Sprintf("auto: preferred by the %s backend, at most the %d rows of the lowest stripe", backend, low)
	beyond := len(at.Names()) > 1 && cfg.Halo.Transport != "p2p" || cfg.Halo.Transport == "nats"
	if cfg.Run.Ranks > 1 && beyond && 2*depth <= low {
		why += "; the ranks measure the network and may take a multiple of it"
	}
	return min(depth, low), why
}

// layouts returns, by rank, the layouts of the stripes.
func layouts(mesh solver.Mesh, o solver.Operator, stripes []solver.Stripe, depth int) []solver.Layout {
	all := make([]solver.Layout, len(stripes))
	for rank, s := range stripes {
		all[rank] = solver.Layout{Mesh: mesh, Stripe: s, Depth: depth, Operator: o}
		all[rank].Neighbour[solver.Top] = rank > 0 || mesh.PeriodicRows()
		all[rank].Neighbour[solver.Bottom] = rank < len(stripes)-1 || mesh.PeriodicRows()
	}
	return all
}

// chebyshevOf returns the plan of Chebyshev's iteration and fits the layouts to it; nil for other methods.
func chebyshevOf(s configs.Solver, ranks []solver.Layout) (*chebyshev.Plan, error) {
	if !s.Chebyshev() {
		return nil, nil
	}
	p, err := chebyshev.NewPlan(ranks[0].Mesh, ranks[0].Operator)
	if err != nil {
		return nil, err
	}
	for i, l := range ranks {
		ranks[i] = p.Fit(l)
	}
	if _, err := p.Last(s.MaxIterations); err != nil {
		return p, fmt.Errorf("solver.max_iterations %d: %w", s.MaxIterations, err)
	}
	return p, nil
}

// Room returns an upper bound on the size of the run's files.
func (p *Plan) Room() (output.Room, error) {
	room, err := output.RoomFor(p.Config.Output, p.Mesh, p.Config.Run.Ranks, p.Config.Solver)
	room.Trace = output.TraceRoom(p.Config, p.Config.Run.Ranks)
	return room, err
}

// slowDisk is the speed, in bytes a second, of the slowest file system that a run supports.
const slowDisk = 10 << 20

// WritingTime bounds the time in which the ranks write the field and, if checkpoints are on, one checkpoint.
func (p *Plan) WritingTime() time.Duration {
	bytes := time.Duration(p.Mesh.NY) * time.Duration(p.Mesh.RowBytes())
	if p.Config.Checkpoint.On() {
		bytes *= 2
	}
	return bytes / slowDisk * time.Second
}

// String describes the run in one line.
func (p *Plan) String() string {
	return fmt.Sprintf("%s on %s: %s, %d x %d %s, %s", english.Plural(len(p.Ranks), "rank", ""), p.Hosts(), p.Title,
		p.Mesh.NX, p.Mesh.NY, p.Mesh.DType, p.Config.Solver.MethodText())
}

// largeField is the size from which on Writes says how to omit the field.
const largeField = 256 << 20

// Writes names in one line the files that the run will write.
func (p *Plan) Writes() string {
	o := p.Config.Output
	names := slices.DeleteFunc(o.Names(), func(name string) bool { return name == configs.Stdout })
	to := ""
	switch configs.Stdout {
	case o.History:
		to = "; the history goes to standard output"
	case o.Report:
		to = "; the report goes to standard output"
	}
	if len(names) == 0 {
		return "writes no files" + to
	}
	names[0] = filepath.Join(o.Dir, names[0])
	hint := ""
	if size, err := output.FieldBytes(o, p.Mesh); err == nil && o.Field != "" {
		names[0] += " (" + humanize.IBytes(uint64(size)) + ")"
		if o.Series() {
			names[0] += fmt.Sprintf(" and %s every %s", o.SeriesFiles(),
				english.Plural(o.Every.Sweeps, p.Config.Solver.Step(), ""))
		}
		if size >= largeField {
			hint = "; --set output.field= leaves the field out"
		}
	}
	return "writes " + strings.Join(names, ", ") + to + hint
}
