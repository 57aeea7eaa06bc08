package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/checkpoint"
	"jacobi/internal/dirlock"
	"jacobi/internal/farfiles"
	"jacobi/internal/launch"
	"jacobi/internal/output"
)

// holdings are the directories that a run holds exclusively.
type holdings struct {
	out         *output.Held // nil if the run writes no files
	checkpoints *dirlock.Lock
	tidy        func(context.Context) error // removes incomplete checkpoints
	stop        func()                      // stops serving out to ranks; nil if it is not served
}

// hold takes the directories to which a run writes.
func (p *plan) hold(runID string, say func(string)) (h holdings, err error) {
	if o := p.cfg.Output; len(o.Names()) > 0 {
		var notes []string
		if h.out, notes, err = output.Hold(o.Dir, runID); err != nil {
			return h, err
		}
		for _, note := range notes {
			say(note)
		}
	}
	if c := p.cfg.Checkpoint; c.On() && c.Dir != "" && !p.trial {
		if h.checkpoints, err = dirlock.Take(c.Dir, runID); err != nil {
			return h, errors.Join(fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err), h.close(context.Background()))
		}
		h.tidy = checkpoint.NewDir(c.Dir).RemoveUnsealed
	}
	return h, nil
}

// serve lets the ranks write files in output.dir over NATS.
func (h *holdings) serve(conn farfiles.Conn, runID string, names []string, log *zap.Logger) (err error) {
	if h.out != nil {
		h.stop, err = farfiles.Serve(farfiles.Options{Conn: conn, RunID: runID, Dir: h.out, Names: names, Log: log})
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
		return fmt.Errorf("the disk does not answer for %v; the next run finishes or removes what is not in its place",
			closeGrace)
	}
}

// ended describes a run that has ended.
type ended struct {
	launch.Outcome
	runID string
	files []string // files that are in place
	fault error    // why files is unknown, or why a file for standard output could not be written there
}

// end collects what the run left in output.dir. It is called after the ranks have ended, so the files do not change.
func (h *holdings) end(p *plan, out launch.Outcome, runID string, stdout io.Writer) ended {
	e := ended{Outcome: out, runID: runID}
	if h.out == nil {
		return e
	}
	e.fault = h.within(func() error { h.stop(); return nil })
	if e.fault != nil {
		*h = holdings{} // the locks end with this process
		return e
	}
	h.stop = nil
	e.files = h.out.Committed()
	if p.cfg.Output.ToStdout() {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // a slow reader may block the copy; Ctrl-C must end it
		e.fault = h.out.CopyTo(stdout)
	}
	return e
}

// left describes the contents of output.dir after a run that failed.
func (e ended) left(o configs.Output) string {
	if len(e.files) == 0 && e.fault != nil {
		return fmt.Sprintf("output.dir %q: %v", o.Dir, e.fault)
	}
	if len(e.files) == 0 {
		return "outputs of earlier runs are as they were"
	}
	paths := make([]string, len(e.files))
	for i, name := range e.files {
		paths[i] = filepath.Join(o.Dir, name)
	}
	return "the outputs of this run are in place: " + strings.Join(paths, ", ")
}
