package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

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

// serve lets the ranks write to output.dir, until stop is called.
func (h *holdings) serve(conn farfiles.Conn, runID string, names []string, log *zap.Logger) (stop func(), err error) {
	if h.out == nil {
		return func() {}, nil
	}
	return farfiles.Serve(farfiles.Options{Conn: conn, RunID: runID, Dir: h.out, Names: names, Log: log})
}

// close removes what the ranks did not live to complete and gives the directories back. A second time it does nothing.
func (h *holdings) close(ctx context.Context) error {
	var errs []error
	if h.out != nil {
		errs = append(errs, h.out.Close())
	}
	if h.checkpoints != nil {
		errs = append(errs, h.tidy(ctx), h.checkpoints.Release())
	}
	*h = holdings{}
	return errors.Join(errs...)
}

// ended is a run that has come to its end.
type ended struct {
	launch.Outcome
	runID  string
	files  []string // that are in their places
	unsaid error    // why what belongs on standard output is not there
}

// end takes stock once the ranks have ended and nobody changes output.dir any more.
func (h *holdings) end(out launch.Outcome, runID string, stdout io.Writer) ended {
	e := ended{Outcome: out, runID: runID}
	if h.out != nil {
		e.files = h.out.Committed()
		e.unsaid = h.out.CopyTo(stdout)
	}
	return e
}

// left says what is in output.dir after a run that did not end well.
func (e ended) left(o configs.Output) string {
	if len(e.files) == 0 {
		return "outputs of earlier runs are as they were"
	}
	paths := make([]string, len(e.files))
	for i, name := range e.files {
		paths[i] = filepath.Join(o.Dir, name)
	}
	return "the outputs of this run are in place: " + strings.Join(paths, ", ")
}
