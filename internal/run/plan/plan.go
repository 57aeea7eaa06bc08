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
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// Plan describes a run before it starts.
type Plan struct {
	Config configs.Config
	HX, HY float64  // spacings
	Title  string   // of the problem
	Notes  []string // warnings about the problem
	hosts.Places
	Idle string // how many ranks stay idle, for which there are no places; "" if none does
	Devices
	*setup.Setup
	WhyDepth string
	Memory   []int64          // bytes, by rank
	Saved    []int64          // bytes of a checkpoint, by rank
	Pictures int64            // bytes that every rank takes to read the picture of the problem
	problem  *problem.Problem // closed

	// Contents are those of the files of the problem that were checked; nil before that.
	Contents map[string]string
	islands  *problem.Islands // that Check has found
	taken    *problem.Surplus // off the source, as Check has found
}

// Planned returns what the ranks get of the plan.
func (p *Plan) Planned() configs.Planned {
	return configs.Planned{Config: p.Config, Contents: p.Contents}
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
	return New(ctx, cfg, at)
}

// New plans the run of cfg on places. If it returns a plan together with an error, the run cannot start, but the plan's
// other parts can be checked for further faults.
func New(ctx context.Context, cfg configs.Config, at hosts.Places) (*Plan, error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, err
	}
	devices, err := chooseDevices(cfg.Device, at)
	p, bad := on(ctx, cfg, at, devices)
	return p, errors.Join(bad, err)
}

// on is New on devices that are known.
func on(ctx context.Context, cfg configs.Config, at hosts.Places, devices Devices) (*Plan, error) {
	prob, bad := problem.New(ctx, cfg)
	if prob == nil {
		return nil, bad
	}
	notes := prob.Warnings(ctx)
	bad = errors.Join(bad, prob.Close())
	at, err := devices.working(cfg, at, prob)
	if err != nil {
		return nil, errors.Join(bad, err)
	}
	ranks, why, err := divide(cfg, at, prob, devices.OnGPUs)
	if err != nil {
		return nil, errors.Join(bad, err)
	}
	memory, err := rankMemory(cfg, at, ranks, devices.OnGPUs)
	if err != nil {
		return nil, errors.Join(bad, err)
	}
	saved := make([]int64, ranks.Ranks)
	for r := range saved {
		saved[r] = savedBytes(ranks, ranks.Layout(r))
	}
	hx, hy := prob.Spacings()
	return &Plan{Config: cfg, HX: hx, HY: hy, Title: prob.Name(), Notes: notes, Places: at,
		Idle: setup.Idle(cfg, len(at.Placements)), Devices: devices, Setup: ranks, WhyDepth: why, Memory: memory,
		Saved: saved, Pictures: prob.PictureBytes(), problem: prob}, bad
}

// divide returns the set-up that the ranks will come to, and the reason for its depth. They may take deeper halos, by
// what they measure of links between nodes, and with run.balance auto other stripes, by what they measure of speeds.
func divide(cfg configs.Config, at hosts.Places, prob *problem.Problem, onGPUs bool) (*setup.Setup, string, error) {
	weights, err := cfg.Weights()
	if err != nil {
		return nil, "", err
	}
	mesh, n := prob.Mesh(), len(at.Placements)
	low := solver.MinRows(mesh.Interior(), n)
	device := setup.DeviceOf(onGPUs)
	preferred, most := device.Passes(mesh, prob.Operator(), low, cfg.Solver.NormEvery)
	depth, auto := setup.DepthOf(cfg, mesh, preferred)
	why, method := "halo.depth", cfg.Solver.Entry()
	switch beyond := len(at.Names()) > 1 && cfg.Halo.Transport != "p2p" || cfg.Halo.Transport == "nats"; {
	case method.Halo > 0:
		why = "of solver.method " + method.Name
	case auto:
		why = fmt.Sprintf("auto: preferred by the %s backend, at most the %d rows of the lowest stripe",
			strings.ToUpper(string(device)), low)
		if n > 1 && beyond && 2*preferred <= low {
			why += "; the ranks measure the network and may take a multiple of it"
		}
	}
	s, err := setup.New(setup.Options{Mesh: mesh, Operator: prob.Operator(), Norms: cfg.Solver.Norms(),
		Method: method, Ranks: n, Weights: weights, Depth: depth, MaxSweeps: most,
		ReachAll: onGPUs && n > 1 && len(at.Names()) == 1 && cfg.Halo.Transport != "nats"})
	return s, why, err
}

// AllWork returns an error if ranks stay idle, for commands that measure or test all of them.
func (p *Plan) AllWork() error {
	if p.Idle == "" {
		return nil
	}
	return fmt.Errorf("run.ranks %d: every rank has to work here, and %s", p.Config.Run.Ranks, p.Idle)
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

// Room returns an upper bound on the size of the run's files.
func (p *Plan) Room() (output.Room, error) {
	room, err := output.RoomFor(p.Config, p.Mesh, p.HX, p.HY, len(p.Stripes))
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
	dtype := p.Mesh.DType.String()
	if p.Config.Output.Float32 && p.Mesh.DType == solver.Float64 {
		dtype += " (files float32)"
	}
	return fmt.Sprintf("%s on %s: %s, %d x %d %s, %s", english.Plural(len(p.Placements), "rank", ""), p.Hosts(),
		p.Title, p.Mesh.NX, p.Mesh.NY, dtype, p.Config.Solver.MethodText())
}

// largeField is the least size of a field for which Writes names the key that omits it.
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
				english.Plural(o.Every.Iterations, p.Config.Solver.Step(), ""))
		}
		if size >= largeField {
			hint = "; --set output.field= leaves the field out"
		}
	}
	return "writes " + strings.Join(names, ", ") + to + hint
}

// maxCounted is the largest number of points among which Problem counts the fixed ones. It takes some seconds.
const maxCounted = 1 << 30

// Problem describes the problem. ok is false if the problem has faults.
func (p *Plan) Problem(ctx context.Context) (setup problem.Setup, ok bool) {
	prob, err := p.problem.Again(ctx)
	if err != nil {
		return setup, false // Check reports the faults
	}
	defer prob.Close()
	fixed := int64(-1)
	if p.Mesh.NX <= maxCounted/p.Mesh.NY {
		if fixed, err = prob.CountFixed(ctx, 0, p.Mesh.NY); err != nil {
			return setup, false
		}
	}
	prob.Tell(p.islands)
	prob.TakeOff(p.taken)
	return prob.Setup(fixed), true
}

// Job plans one of many runs on the ranks of p, which have started. alone says that one rank does it without the
// others. As with New, a plan that comes with an error cannot be run.
func (p *Plan) Job(ctx context.Context, cfg configs.Config, alone bool) (*Plan, error) {
	if err := checkKeys(cfg); err != nil {
		return nil, err
	}
	if alone {
		cfg.Run.Ranks, cfg.Run.Balance = 1, configs.BalanceEqual
	}
	at, devices := p.Places, p.Devices
	if n := cfg.Working(); n < len(at.Placements) {
		at.Placements = at.Placements[:n]
		if len(devices.Choices) > 0 {
			devices.Choices = devices.Choices[:n]
		}
	}
	return on(ctx, cfg, at, devices)
}

// checkKeys refuses values of keys that are not allowed, and keys that one of many runs cannot have.
func checkKeys(c configs.Config) error {
	if err := configs.Validate(c); err != nil {
		return err
	}
	if err := configs.CheckMany(c); err != nil {
		return err
	}
	for _, f := range c.Output.Files() {
		if !output.IsStudyName(f.Name) {
			return fmt.Errorf("%s %q: the runs of one start write no Zarr groups and no hidden files", f.Key, f.Name)
		}
	}
	return nil
}
