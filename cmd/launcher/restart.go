package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/checkpoint"
	"jacobi/internal/dirlock"
	"jacobi/internal/launch"
	"jacobi/internal/wire"
)

// defineRestart defines the flags that say from which state a run starts.
func (o *options) defineRestart(f *pflag.FlagSet) {
	f.BoolVar(&o.restart, "restart", false, "go on from the newest checkpoint in checkpoint.dir or "+
		"checkpoint.nats")
	f.StringVar(&o.resume, "resume", "", "go on from the checkpoint in `DIR`, or from the newest of several there")
	f.IntVar(&o.restarts, "max-restarts", 0, "start the run again up to `N` times when a rank or a host dies, from "+
		"its newest checkpoint")
}

const restartHint = "--restart goes on from where checkpoints are written"

// resumed returns cfg with the choice of --restart or --resume.
func (o *options) resumed(cfg configs.Config) (configs.Config, error) {
	switch {
	case o.restart && o.resume != "":
		return cfg, errors.New("--restart and --resume: one of them is wanted; " + restartHint)
	case o.resume != "":
		cfg.Checkpoint.Resume = o.resume
	case o.restart && cfg.Checkpoint.Place() == "":
		return cfg, errors.New("--restart: checkpoint.dir or checkpoint.nats has to say where the checkpoints are")
	case o.restart:
		cfg.Checkpoint.Resume = cfg.Checkpoint.Place()
	}
	return cfg, nil
}

// checkCheckpoints refuses a checkpoint from which the run cannot go on, and a directory to which no checkpoint can be
// written. With create it creates the directory. It does not check buckets: the ranks do.
func (p *plan) checkCheckpoints(ctx context.Context, create bool) error {
	c := p.cfg.Checkpoint
	fields, err := configs.FieldKeys(p.cfg)
	if err != nil {
		return err
	}
	var faults []error
	if dir, _ := configs.SplitPlace(c.Resume); dir != "" {
		if err := checkpoint.CheckResume(ctx, dir, fields, p.cfg.Solver); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.resume %q: %w", dir, err))
		}
	}
	if c.On() && len(p.gpus) > 0 {
		if err := configs.CheckMemory(p.copyBytes()); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.every %q: copies of the stripes: %w", c.Every, err))
		}
	}
	if c.On() && c.Dir != "" {
		if err := dirlock.Check(c.Dir); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		} else if err := checkpoint.CheckDir(ctx, c.Dir, fields, c.Keep, p.mesh, create); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		}
	}
	return errors.Join(faults...)
}

// checkpointBytes returns the extra memory that a rank on the CPU needs for checkpoints: a copy of its stripe.
func (p *plan) checkpointBytes(rank int) int64 {
	if !p.cfg.Checkpoint.On() || p.sweepOnGPUs() {
		return 0
	}
	return p.stripeBytes(rank)
}

func (p *plan) stripeBytes(rank int) int64 {
	return int64(p.stripes[rank].Rows()) * int64(p.mesh.RowBytes())
}

// copyBytes returns the host memory that the ranks with GPUs on this machine need for checkpoints.
func (p *plan) copyBytes() (n int64) {
	for _, at := range p.ranks {
		if p.here[at.Host] {
			n += p.stripeBytes(at.Rank)
		}
	}
	return n
}

// slowDisk is the speed, in bytes a second, of the slowest file system that a run supports.
const slowDisk = 10 << 20

// writing bounds the time in which the ranks write the field and, if checkpoints are on, one checkpoint.
func (p *plan) writing() time.Duration {
	bytes := time.Duration(p.mesh.NY) * time.Duration(p.mesh.RowBytes())
	if p.cfg.Checkpoint.On() {
		bytes *= 2
	}
	return bytes / slowDisk * time.Second
}

// restarts counts the restarts of a run.
type restarts struct {
	o     options        // its places exclude hosts that were lost
	cfg   configs.Config // configuration of the first start
	done  int
	start time.Time // when the time limit began
}

// timeLeft returns the rest of the time limit.
func (r *restarts) timeLeft() timeLimit {
	limit := r.o.timeout
	if limit.left > 0 {
		limit.left = max(limit.left-time.Since(r.start), time.Millisecond)
	}
	return limit
}

// next returns the plan of the next start after a start that ended with out; nil if there is none.
func (r *restarts) next(ctx context.Context, p *plan, out launch.Outcome, say func(string)) *plan {
	// If a start failed before its first sweep, its checkpoint may be unusable: the next one starts as the first did.
	failed, ok := errors.AsType[*launch.RankError](out.Err)
	stuck := ok && failed.Sweeps == 0 && p.cfg.Checkpoint.Resume != r.cfg.Checkpoint.Resume
	if r.done == r.o.restarts || !out.MayRestart() && !stuck {
		return nil
	}
	cfg, from := r.cfg, "from where it first began"
	if !stuck {
		cfg.Checkpoint.Resume, from = r.newest(ctx)
	}
	r.o.places.lost = append(r.o.places.lost, out.LostHosts...)
	next, err := r.o.plan(ctx, cfg, say)
	if err != nil {
		say("no restart: " + err.Error())
		return nil
	}
	r.done++
	say(out.Err.Error())
	say(fmt.Sprintf("restart %d of %d: %s", r.done, r.o.restarts, from))
	return next
}

// newest returns the place from which the next start resumes, and describes it.
func (r *restarts) newest(ctx context.Context) (resume, from string) {
	c := r.cfg.Checkpoint
	if c.On() {
		if found, err := r.list(ctx); err == nil && len(found) > 0 {
			return c.Place(), fmt.Sprintf("on after sweep %d, from %s", found[0].Sweeps-1, c.Place())
		}
	}
	if c.Resume != "" {
		return c.Resume, "again from " + c.Resume
	}
	return "", "from the start, there is no checkpoint yet"
}

// hint tells the user of a run that failed or was stopped how to resume it.
func (r *restarts) hint(ctx context.Context, say func(string)) {
	if !r.cfg.Checkpoint.On() {
		return
	}
	if found, err := r.list(ctx); err == nil && len(found) > 0 {
		text := fmt.Sprintf("--restart goes on after sweep %d, from %s", found[0].Sweeps-1, r.cfg.Checkpoint.Place())
		if r.o.config != configs.StandardInput { // standard input cannot be read a second time
			text += ": " + restartCommand(os.Args)
		}
		say(text)
	}
}

// list returns the checkpoints of the run, the newest first.
func (r *restarts) list(ctx context.Context) ([]checkpoint.Found, error) {
	var conn *nats.Conn
	if r.cfg.Checkpoint.NATS != "" {
		c, err := wire.Connect(ctx, wire.Options{Server: r.cfg.NATS, Name: "jacobi launcher", Timeout: connectTimeout})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		conn = c.Raw()
	}
	store, _, err := checkpoint.Open(ctx, r.cfg.Checkpoint.Place(), conn)
	if err != nil {
		return nil, err
	}
	found, _, err := checkpoint.List(ctx, store, "")
	return found, err
}
