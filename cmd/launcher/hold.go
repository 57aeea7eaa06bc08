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

// holdings are the directories that belong to a run while it is under way.
type holdings struct {
	out         *output.Held // nil if the run writes no files
	checkpoints *dirlock.Lock
	tidy        func(context.Context) error // removes what is not complete in checkpoints
	stop        func()                      // ends what the ranks do in out; nil if they do nothing
}

// hold takes the directories that a run writes to.
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

// serve lets the ranks write to output.dir.
func (h *holdings) serve(conn farfiles.Conn, runID string, names []string, log *zap.Logger) (err error) {
	if h.out != nil {
		h.stop, err = farfiles.Serve(farfiles.Options{Conn: conn, RunID: runID, Dir: h.out, Names: names, Log: log})
	}
	return err
}

// close removes what the ranks did not live to complete and gives the directories back. A second time it does nothing.
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

// closeGrace is how long a disk may take once the ranks have ended.
const closeGrace = 30 * time.Second

// within does what waits for a disk, which may answer no more.
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

// ended is a run that has come to its end.
type ended struct {
	launch.Outcome
	runID string
	files []string // that are in their places
	fault error    // why that is not known, or what belongs on standard output is not there
}

// end takes stock once the ranks have ended: nobody changes output.dir any more.
func (h *holdings) end(p *plan, out launch.Outcome, runID string, stdout io.Writer) ended {
	e := ended{Outcome: out, runID: runID}
	if h.out == nil {
		return e
	}
	e.fault = h.within(func() error { h.stop(); return nil })
	if e.fault != nil {
		*h = holdings{} // they end with this process
		return e
	}
	h.stop = nil
	e.files = h.out.Committed()
	if p.cfg.Output.ToStdout() {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // whoever reads there may take his time
		e.fault = h.out.CopyTo(stdout)
	}
	return e
}

// left says what is in output.dir after a run that did not end well.
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
