package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/cpu"
	"jacobi/internal/device"
	"jacobi/internal/dirlock"
	"jacobi/internal/output"
	"jacobi/internal/problem"
	"jacobi/solver"
)

// plan describes a run before it starts.
type plan struct {
	cfg   configs.Config
	mesh  solver.Mesh
	title string // of the problem
	places
	stripes []solver.Stripe
	gpus    []driver.Device  // of this machine; empty if the ranks sweep on the CPU
	whyCPU  error            // why the CPU sweeps; nil if GPUs do
	choices []*device.Choice // GPUs by rank, nil for ranks on other hosts; empty if the ranks sweep on the CPU
	depth   int
	why     string   // reason for the depth
	memory  []int64  // bytes, by rank
	notes   []string // warnings about the problem
	trial   bool     // the ranks end before the first sweep
}

// newPlan plans a valid configuration on places. If it returns a plan together with an error, the run cannot start, but
// the plan's other parts can be checked for further faults.
func newPlan(cfg configs.Config, at places) (*plan, error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, err
	}
	prob, bad := problem.New(cfg)
	if prob == nil {
		return nil, bad
	}
	p := &plan{cfg: cfg, mesh: prob.Mesh(), title: prob.Name(), places: at, notes: prob.Warnings()}
	bad = errors.Join(bad, prob.Close(), p.chooseGPUs())
	p.depth, p.why = p.haloDepth()
	var err error
	if p.stripes, err = solver.Partition(p.mesh.Interior(), cfg.Run.Ranks, p.depth); err != nil {
		return nil, errors.Join(bad, err)
	}
	if p.memory, err = p.workOutMemory(); err != nil {
		return nil, errors.Join(bad, err)
	}
	return p, bad
}

// haloDepth returns the depth that the ranks will choose, and the reason.
func (p *plan) haloDepth() (int, string) {
	if p.cfg.Halo.Depth > 0 {
		return p.cfg.Halo.Depth, "halo.depth"
	}
	low := solver.MinRows(p.mesh.Interior(), p.cfg.Run.Ranks)
	backend, depth := "CPU", cpu.PreferredDepth(p.mesh, low)
	if p.sweepOnGPUs() {
		backend, depth = "CUDA", cuda.PreferredDepth(p.mesh, low)
	}
	return min(depth, low),
		fmt.Sprintf("auto: preferred by the %s backend, at most the %d rows of the lowest stripe", backend, low)
}

// check reports, in one error, everything that would make the run fail after its start. With create it creates the
// directories of outputs and checkpoints.
func (p *plan) check(ctx context.Context, create bool) error {
	var faults []error
	for _, f := range p.faults(ctx, create) {
		faults = append(faults, f.error)
	}
	return errors.Join(faults...)
}

// fault is a reason why a run would fail after its start, and the remedy.
type fault struct {
	error
	do string
}

// Remedies.
const (
	correctProblem = "correct the expression or file that it names"
	correctOutput  = "make it a directory that you may write, with room, or set output.dir to another one"
)

// faults returns the faults that check reports.
func (p *plan) faults(ctx context.Context, create bool) (faults []fault) {
	tooLarge := p.checkMemory()
	for _, f := range []fault{
		{tooLarge, "take a smaller grid or grid.dtype float32, fewer ranks on this machine, or more machines"},
		{p.checkProblem(ctx, tooLarge == nil), correctProblem},
		{p.checkOutput(create), correctOutput},
		{p.checkCheckpoints(ctx, create), "make it a directory that you may write, with room, or name another one"},
	} {
		if f.error != nil {
			faults = append(faults, f)
		}
	}
	return faults
}

// checkProblem checks the expressions and the file of the problem. With values it also checks values of the field,
// which takes memory.
func (p *plan) checkProblem(ctx context.Context, values bool) error {
	prob, err := problem.New(p.cfg)
	if err != nil {
		return err
	}
	if values {
		err = prob.Check(ctx)
	}
	return errors.Join(err, prob.Close())
}

func (p *plan) checkOutput(create bool) error {
	o := p.cfg.Output
	if o.Field+o.Picture+o.History+o.Report == "" {
		return nil
	}
	if _, err := os.Stat(o.Dir); errors.Is(err, os.ErrNotExist) && !create {
		return nil
	}
	if err := output.CheckDir(o.Dir); err != nil {
		return err
	}
	if err := output.CheckNames(o); err != nil {
		return err
	}
	if err := dirlock.Check(o.Dir); err != nil {
		return fmt.Errorf("output.dir %q: %w", o.Dir, err)
	}
	room, err := p.room()
	if err != nil {
		return err
	}
	return output.CheckRoom(o.Dir, room.Bytes())
}

// room returns an upper bound on the size of the run's files.
func (p *plan) room() (output.Room, error) {
	return output.RoomFor(p.cfg.Output, p.mesh, p.cfg.Run.Ranks, p.cfg.Solver.MaxIterations)
}

// String describes the run in one line.
func (p *plan) String() string {
	return fmt.Sprintf("%s on %s: %s, %d x %d %s", plural(len(p.ranks), "rank"), p.hosts(), p.title, p.mesh.NX,
		p.mesh.NY, p.mesh.DType)
}

// largeField is the size from which on writes says how to omit the field.
const largeField = 256 << 20

// writes names in one line the files that the run will write.
func (p *plan) writes() string {
	o := p.cfg.Output
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
	if size, err := output.FieldBytes(p.mesh); err == nil && o.Field != "" {
		names[0] += " (" + bytesText(size) + ")"
		if size >= largeField {
			hint = "; --set output.field= leaves the field out"
		}
	}
	return "writes " + strings.Join(names, ", ") + to + hint
}

func bytesText(n int64) string { return humanize.IBytes(uint64(n)) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func setAll(vars []string) error {
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("-x %s: %w", name, err)
		}
	}
	return nil
}
