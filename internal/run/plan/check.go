package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/checkpoint"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
)

// Fault is a reason why a run would fail after its start.
type Fault struct {
	Err error
	Do  string // the remedy
}

// Remedies.
const (
	CorrectProblem = "correct the expression or file that it names"
	CorrectOutput  = "make it a directory that you may write, with room, or set output.dir to another one"
)

// Check returns, in one error, everything that would make the run fail after its start. With create it creates the
// directories of outputs and checkpoints.
func (p *Plan) Check(ctx context.Context, create bool) error { return join(p.Faults(ctx, create)) }

// CheckJob is Check of a job on ranks that have started, whose directories are known to be good.
func (p *Plan) CheckJob(ctx context.Context) error {
	return join(append(p.jobFaults(ctx), Fault{Err: p.checkFiles()}))
}

func join(faults []Fault) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// Faults returns the faults that Check reports.
func (p *Plan) Faults(ctx context.Context, create bool) []Fault {
	all := append(p.jobFaults(ctx), Fault{p.checkOutput(create), CorrectOutput},
		Fault{p.checkCheckpoints(ctx, create), "make it a directory that you may write, with room, or name another " +
			"one"})
	return slices.DeleteFunc(all, func(f Fault) bool { return f.Err == nil })
}

// jobFaults are faults of any job: of its size and of its problem. Parts may have no error.
func (p *Plan) jobFaults(ctx context.Context) []Fault {
	tooLarge := p.checkMemory()
	return []Fault{
		{tooLarge, "take a smaller grid or grid.dtype float32, fewer ranks on this machine, or more machines"},
		{p.checkProblem(ctx, tooLarge == nil), CorrectProblem},
	}
}

// checkProblem checks the expressions and the files of the problem. With values it also checks values of the field,
// which takes memory, and takes the contents of the files, which then have to be those that the ranks read.
func (p *Plan) checkProblem(ctx context.Context, values bool) error {
	prob, err := p.problem.Again(ctx)
	if err != nil {
		return err
	}
	if values {
		err = prob.Check(ctx)
	}
	if err == nil && values {
		p.islands, p.taken = prob.Islands(), prob.Taken()
		p.Contents, err = prob.Contents(ctx)
	}
	return errors.Join(err, prob.Close())
}

func (p *Plan) checkOutput(create bool) error {
	o := p.Config.Output
	if len(o.Names()) == 0 {
		return nil
	}
	if err := output.CheckFree(o.Dir, create); err != nil {
		return err
	}
	return p.checkFiles()
}

// checkFiles checks the names of the outputs and their sizes.
func (p *Plan) checkFiles() error {
	o := p.Config.Output
	if len(o.Names()) == 0 {
		return nil
	}
	if err := output.CheckNames(o); err != nil {
		return err
	}
	room, err := p.Room()
	if err != nil {
		return err
	}
	return output.CheckRoom(o.Dir, room.Bytes())
}

// checkCheckpoints refuses a checkpoint from which the run cannot go on, and a directory to which no checkpoint can be
// written. With create it creates the directory. It does not check buckets: the ranks do.
func (p *Plan) checkCheckpoints(ctx context.Context, create bool) error {
	c := p.Config.Checkpoint
	if !c.On() && c.Resume == "" {
		return nil
	}
	// Without contents the problem has faults, which checkProblem reports.
	identity, err := checkpoint.NewProblem(p.Config, p.Contents, p.problem.EdgeRule())
	if err != nil {
		return err
	}
	var faults []error
	saved := int64(0)
	for _, bytes := range p.Saved {
		saved += bytes
	}
	if dir, _ := configs.SplitPlace(c.Resume); dir != "" {
		if err := checkpoint.CheckResume(ctx, dir, identity, p.Config.Solver); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.resume %q: %w", dir, err))
		}
	}
	if c.On() && len(p.GPUs) > 0 {
		if err := configs.CheckMemory(p.sumHere(func(rank int) int64 { return p.Saved[rank] })); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.every %q: copies of the stripes: %w", c.Every, err))
		}
	}
	if c.On() && c.Dir != "" {
		if err := dirlock.Check(c.Dir); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		} else if err := checkpoint.CheckDir(ctx, c.Dir, identity, c.Keep, saved, create); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		}
	}
	return errors.Join(faults...)
}

// Prepare is the launch.Prepare of a machine whose launcher is elsewhere. It checks whether the ranks of spec can run
// on this machine, sets their working directory, and starts services that they need.
func Prepare(ctx context.Context, spec *launch.Spec) (done func(), err error) {
	if err := enter(spec); err != nil {
		return nil, err
	}
	job, err := configs.FromLauncher(spec.Env)
	if err != nil {
		return nil, err
	}
	cfg := job.Config
	if err := configs.Validate(cfg); err != nil {
		return nil, err
	}
	here, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	at, err := placesOf(spec.Ranks, here, cfg.Working())
	if err != nil {
		return nil, err
	}
	p, err := New(ctx, cfg, at)
	if err != nil {
		return nil, err
	}
	if err := p.checkMemory(); err != nil {
		return nil, err
	}
	return p.shareGPUs(ctx, spec, func(text string) { fmt.Fprintln(os.Stderr, text) }), nil
}

// enter changes to the working directory of spec. If that does not exist on this machine, it sets it to the home
// directory.
func enter(spec *launch.Spec) error {
	if _, err := os.Stat(spec.Dir); err != nil {
		// mpirun does the same. Relative paths of the run file are wrong then; an error about one names the path.
		home, homeErr := os.UserHomeDir()
		if homeErr != nil {
			return fmt.Errorf("working directory: %w; %w", err, homeErr)
		}
		fmt.Fprintf(os.Stderr, "%v; the ranks start in %s\n", err, home)
		spec.Dir = home
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	return nil
}

// Scheduled plans a run whose ranks a scheduler has started. id is that of rank 0, on this machine; ranks of other
// machines are not known.
func Scheduled(ctx context.Context, cfg configs.Config, id roster.Identity) (*Plan, error) {
	here, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	working := cfg.Working()
	near := make([]roster.Identity, min(max(1, id.LocalSize), working))
	for r := range near {
		near[r] = roster.Identity{Rank: r, LocalRank: r, LocalSize: len(near)}
	}
	at, err := placesOf(near, here, working)
	if err != nil {
		return nil, err
	}
	return New(ctx, cfg, at)
}

// placesOf returns the places of all ranks of a run. Only those of ids have a host, which is called here.
func placesOf(ids []roster.Identity, here string, ranks int) (hosts.Places, error) {
	at := hosts.Places{Placements: make([]launch.Placement, ranks), Here: map[string]bool{here: true}}
	for r := range at.Placements {
		at.Placements[r].Rank = r
	}
	for _, id := range ids {
		if id.Rank < 0 || id.Rank >= ranks {
			return hosts.Places{}, fmt.Errorf("order to start rank %d: run.ranks %d allows 0 to %d", id.Rank, ranks,
				ranks-1)
		}
		at.Placements[id.Rank] = launch.Placement{Rank: id.Rank, Host: here, LocalRank: id.LocalRank,
			LocalSize: id.LocalSize}
	}
	return at, nil
}

// Means returns the means to reach the hosts of p. Messages about them go to say.
func (p *Plan) Means(ssh launch.SSH, say func(string)) hosts.Means {
	prepare := func(ctx context.Context, spec *launch.Spec) (func(), error) { return p.shareGPUs(ctx, spec, say), nil }
	return hosts.Means{SSH: ssh, NATS: p.Config.NATS, Here: prepare, Say: say}
}

// shareGPUs starts NVIDIA's multi-process service if ranks on this machine share GPUs, unless device.mps is off, there
// are too many ranks for it or it cannot be started. Without the service the ranks sweep more slowly.
func (p *Plan) shareGPUs(ctx context.Context, spec *launch.Spec, say func(string)) (done func()) {
	ranks, gpus := len(spec.Ranks), len(p.GPUs)
	if p.Config.Device.MPS == "off" || gpus == 0 || ranks <= gpus || ranks > mpsClients*gpus {
		return nil
	}
	service, err := startMPS(ctx, spec.Env)
	switch {
	case errors.Is(err, errNoMPS):
		return nil
	case err != nil:
		say(fmt.Sprintf("ranks take turns on the GPUs, without NVIDIA's multi-process service: %v", err))
		return nil
	}
	say(fmt.Sprintf("%d ranks share %s under NVIDIA's multi-process service", ranks, english.Plural(gpus, "GPU", "")))
	spec.Env = append(spec.Env, service.environ()...)
	return func() {
		if err := service.close(); err != nil {
			say(err.Error())
		}
	}
}
