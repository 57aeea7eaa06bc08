package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/checkpoint"
)

// defineRestart defines the flags that say where to go on.
func (o *options) defineRestart(f *pflag.FlagSet) {
	f.BoolVar(&o.restart, "restart", false, "go on from the newest checkpoint where checkpoint.dir or checkpoint.nats says")
	f.StringVar(&o.resume, "resume", "", "go on from a checkpoint: `DIR` of one, or of several, of which the newest is taken")
}

// resumed returns cfg with what --restart and --resume say.
func (o *options) resumed(cfg configs.Config) (configs.Config, error) {
	switch {
	case o.restart && o.resume != "":
		return cfg, errors.New("--restart and --resume: one of them is wanted; --restart goes on from where checkpoints are written")
	case o.resume != "":
		cfg.Checkpoint.Resume = o.resume
	case o.restart && cfg.Checkpoint.Place() == "":
		return cfg, errors.New("--restart: checkpoint.dir or checkpoint.nats has to say where the checkpoints are")
	case o.restart:
		cfg.Checkpoint.Resume = cfg.Checkpoint.Place()
	}
	return cfg, nil
}

// checkCheckpoints refuses a checkpoint from which the run cannot go on, and a place where none can be written. What is in a bucket,
// the ranks find out. It creates the directory if create says so.
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
	if c.On() && c.Dir != "" {
		if err := checkpoint.CheckDir(ctx, c.Dir, fields, c.Keep, p.mesh, create); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		}
	}
	return errors.Join(faults...)
}

// checkpointBytes returns the memory into which a rank copies its stripe for checkpoints.
func (p *plan) checkpointBytes(rank int) int64 {
	if !p.cfg.Checkpoint.On() || len(p.gpus) > 0 {
		return 0
	}
	return int64(p.stripes[rank].Rows()) * int64(p.mesh.RowBytes())
}
