package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/checkpoint"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// Restarts are the options of starting ranks again.
type Restarts struct {
	Where hosts.Where // the places of the first start
	Most  int         // restarts at most
	// Next returns the configuration of the restart after an attempt at p with this end, and text that names the state
	// it goes on from. may is false after the last restart; ok is false if there is to be none.
	Next func(ctx context.Context, p *plan.Plan, end Ended, may bool) (c configs.Config, text string, ok bool)
}

// Run carries out p and, as long as r allows, restarts. o.Limit bounds all attempts together, counted from began. show
// returns what is shown for the plan of an attempt, right before its ranks start; it replaces o.Show. Run returns the
// end of the last attempt.
func (r Restarts) Run(ctx context.Context, p *plan.Plan, o Options, began time.Time,
	show func(*plan.Plan) (event func(roster.Event), done func())) (Ended, error) {
	whole, where := o.Limit, r.Where
	for done := 0; ; done++ {
		o.Limit = whole.After(time.Since(began))
		o.Show = func() (func(roster.Event), func()) { return show(p) }
		end, err := Run(ctx, p, o)
		if err != nil {
			return end, err
		}
		cfg, text, ok := r.Next(ctx, p, end, done < r.Most)
		if !ok {
			return end, nil
		}
		where.Lost = slices.Concat(where.Lost, end.LostHosts)
		next, err := plan.Make(ctx, cfg, where, o.Screen.Say)
		if err != nil {
			o.Screen.Say("no restart: " + err.Error())
			return end, nil
		}
		next.Contents = p.Contents // files must stay as they are, also for a restart
		o.Screen.Restart(end.Err.Error(), fmt.Sprintf("restart %d of %d: %s", done+1, r.Most, text))
		p = next
	}
}

// Saved is a run that starts again from its checkpoints.
type Saved struct {
	Config configs.Config // of the first start
}

// Next is the Next of Restarts. If an attempt failed before its first sweep, its checkpoint may be unusable: the next
// one starts as the first did. Others go on from the newest checkpoint, if there is one.
func (r Saved) Next(ctx context.Context, p *plan.Plan, end Ended, may bool) (c configs.Config, text string, ok bool) {
	c = r.Config
	failed, of := errors.AsType[*launch.RankError](end.Err)
	switch {
	case may && of && failed.Sweeps == 0 && p.Config.Checkpoint.Resume != c.Checkpoint.Resume:
		return c, "from where it first began", true
	case !may || !end.MayRestart():
		return c, "", false
	}
	c.Checkpoint.Resume, text = r.newest(ctx)
	return c, text, true
}

// newest returns the place from which the next attempt resumes, and describes it.
func (r Saved) newest(ctx context.Context) (resume, text string) {
	c := r.Config.Checkpoint
	if sweep, ok := r.LastSaved(ctx); ok {
		return c.Place(), fmt.Sprintf("on after %s %d, from %s", r.Config.Solver.Step(), sweep, c.Place())
	}
	if c.Resume != "" {
		return c.Resume, "again from " + c.Resume
	}
	return "", "from the start, there is no checkpoint yet"
}

// LastSaved returns the last sweep before the newest checkpoint of the run, counted from 0. ok is false if checkpoints
// are off, and if there is none or none can be read.
func (r Saved) LastSaved(ctx context.Context) (sweep int, ok bool) {
	if !r.Config.Checkpoint.On() {
		return 0, false
	}
	found, ok := newest(ctx, r.Config, r.Config.Checkpoint.Place())
	return found.Sweeps - 1, ok
}

// newest returns the newest checkpoint at a place; false if there is none that can be read.
func newest(ctx context.Context, c configs.Config, place string) (found checkpoint.Found, ok bool) {
	var conn *nats.Conn
	if _, bucket := configs.SplitPlace(place); bucket != "" {
		own, err := wire.Connect(ctx, wire.Options{Server: c.NATS, Name: "jacobi launcher",
			Timeout: hosts.ConnectTimeout})
		if err != nil {
			return found, false
		}
		defer own.Close()
		conn = own.Raw()
	}
	return checkpoint.Newest(ctx, place, conn)
}

// WithMethod returns c with the method and the type of the checkpoint from which it goes on, if c leaves them open.
// Where no checkpoint can be read, c stays as it is: the checks of the run name the fault.
func WithMethod(ctx context.Context, c configs.Config) configs.Config {
	if c.Checkpoint.Resume == "" || !c.Open() || configs.Validate(c) != nil {
		return c
	}
	if found, ok := newest(ctx, c, c.Checkpoint.Resume); ok {
		c = found.Choose(c)
	}
	return c
}

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
	if o := cfg.Output; len(o.Names()) > 0 || how.Task.Study {
		var notes []string
		if h.out, notes, err = output.Hold(o, runID); err != nil {
			return h, err
		}
		for _, note := range notes {
			scr.Say(note)
		}
		if how.Task.Study {
			h.out.OfStudy = true
		} else if note := h.out.Replace(); note != "" {
			scr.Notice(note)
		}
	}
	if c := cfg.Checkpoint; c.On() && c.Dir != "" && !how.Task.Examine {
		if h.checkpoints, err = dirlock.Take(c.Dir, runID); err != nil {
			return h, errors.Join(fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err), h.close(context.Background()))
		}
		h.tidy = checkpoint.NewDir(c.Dir).RemoveUnsealed
	}
	return h, nil
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
