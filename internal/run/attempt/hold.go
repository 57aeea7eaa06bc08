package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/checkpoint"
)

// holdings are the directories that a run holds exclusively.
type holdings struct {
	out         *output.Held // nil if the run writes no files
	checkpoints *dirlock.Lock
	tidy        func(context.Context) error // removes incomplete checkpoints
	stop        func()                      // stops serving out to ranks; nil if it is not served
}

// hold takes the directories to which a run writes. A trial writes no checkpoints. Restarts replace the files of the
// same earlier run, which is said once.
func hold(cfg configs.Config, runID string, how Options) (h holdings, err error) {
	scr := how.Screen
	if o := cfg.Output; len(o.Names()) > 0 || how.Many {
		var notes []string
		if h.out, notes, err = output.Hold(o, runID); err != nil {
			return h, err
		}
		for _, note := range notes {
			scr.Say(note)
		}
		if how.Many {
			h.out.Loose = true
		} else if note := h.out.Replace(); note != "" {
			scr.Notice(note)
		}
	}
	if c := cfg.Checkpoint; c.On() && c.Dir != "" && !how.Trial {
		if h.checkpoints, err = dirlock.Take(c.Dir, runID); err != nil {
			return h, errors.Join(fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err), h.close(context.Background()))
		}
		h.tidy = checkpoint.NewDir(c.Dir).RemoveUnsealed
	}
	return h, nil
}

// serve lets the ranks write files in output.dir over NATS.
func (h *holdings) serve(conn pubsub.Conn, runID string) (err error) {
	if h.out != nil {
		h.stop, err = farfiles.Serve(conn, runID, h.out)
	}
	return err
}

// close removes incomplete files and checkpoints and releases the directories. A second call does nothing.
func (h *holdings) close(ctx context.Context) error {
	mine := *h
	*h = holdings{}
	return mine.within(func() error {
		var errs []error
		if mine.stop != nil {
			mine.stop()
		}
		if mine.out != nil {
			errs = append(errs, mine.out.Close())
		}
		if mine.checkpoints != nil {
			errs = append(errs, mine.tidy(ctx), mine.checkpoints.Release())
		}
		return errors.Join(errs...)
	})
}

// closeGrace bounds the wait for a disk after the ranks have ended.
const closeGrace = 30 * time.Second

// within calls do, which waits for a disk, and fails if that takes longer than closeGrace.
func (h *holdings) within(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(closeGrace):
		return fmt.Errorf("the disk does not answer for %v; the next run finishes or cleans up unfinished files",
			closeGrace)
	}
}
