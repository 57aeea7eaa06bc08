package plan

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
)

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
	at := hosts.Places{Ranks: make([]launch.Placement, ranks), Here: map[string]bool{here: true}}
	for r := range at.Ranks {
		at.Ranks[r].Rank = r
	}
	for _, id := range ids {
		if id.Rank < 0 || id.Rank >= ranks {
			return hosts.Places{}, fmt.Errorf("order to start rank %d: run.ranks %d allows 0 to %d", id.Rank, ranks,
				ranks-1)
		}
		at.Ranks[id.Rank] = launch.Placement{Rank: id.Rank, Host: here, LocalRank: id.LocalRank,
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
