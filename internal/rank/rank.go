// Package rank is the life of one rank, from the start of its process to its end. The life has phases. Each phase is a
// type: a method of the phase before makes it, and it holds what the rank has from then on.
//
//	started    the options                                              rank.go
//	prepared   the problem and the devices of this node                 prepare.go, device.go
//	connected  the run's id and the connection to its server            connect.go, server.go
//	joined     the other ranks, and this rank's share of the cores      join.go, cores.go
//	laidOut    the stripes and the depth                                layout.go, depth.go, probe.go
//	opened     the GPU, if one sweeps, and the backend                  gpu.go, sharing.go, backend.go
//	wired      the exchange with the neighbours and the sum over ranks  wire.go, links.go, peers.go
//	loaded     the field, and the saver of checkpoints                  load.go, saver.go
//	ready      the output files                                         outputs.go, place.go, files.go
//	solved     the result of the sweeps                                 solve.go, recorder.go, progress.go, speed.go,
//	                                                                    stats.go, viewer.go, page.go
//	written    the report                                               write.go, digest.go, commit.go, report.go
//
// For launcher doctor a rank goes as far as ready and reports what it found (examine.go, clocks.go). For launcher soak
// it goes as far as wired and sweeps the same problem in rounds (soak*.go). For launcher probe it goes as far as joined
// and measures its machine (machine.go). The phases enter what they open into closers (closers.go). A rank that fails
// tells the others first and closes then (blame.go).
package rank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/examine"
	"jacobi/internal/output"
	"jacobi/internal/probe"
	"jacobi/internal/roster"
	"jacobi/internal/soak"
	"jacobi/solver"
)

// Options are what a rank is started with.
type Options struct {
	Origin  roster.Origin
	Environ []string // "NAME=value", as of os.Environ; tells whether the scheduler's ranks are all on this node
	Config  configs.Config
	Log     *zap.Logger
	// Stop ends with the request to stop. Before the first sweep the rank then ends with the cause, a *StopError.
	// Later all ranks stop after a common sweep.
	Stop context.Context
	// End ends the context that Run is given. It is called if the server refuses a permission that the rank needs.
	End context.CancelCauseFunc
	// Examine makes the rank take every step before the sweeps and report its findings to the launcher.
	Examine bool
	// Soak, if not nil, makes the rank solve the problem again and again and compare the results.
	Soak *soak.Order
	// Probe, if not nil, makes the ranks measure their machines instead of solving.
	Probe *probe.Request
	// Probed is called on rank 0 of a probe that no launcher started, as parts begin and report.
	Probed func(probe.Event) error
	// Stats makes the rank publish statistics while it sweeps.
	Stats bool
	// Watch, if not nil, is called on rank 0 of a run that no launcher started, with the events of all ranks.
	Watch func(roster.Event)
	// Viewed is called on rank 0 of a run that no launcher started, with the URL of its page, if there is one.
	Viewed func(url string)
	// Summarize is called on rank 0 of a run that no launcher started, once the outputs are written. outputs holds
	// output.dir; it is nil if the run writes no file.
	Summarize func(report output.Report, outputs *output.Held) error
}

// launched reports whether a launcher started the rank.
func (o Options) launched() bool { return o.Origin.By == roster.ByLauncher }

// alone reports whether the rank is a run of its own, without a server. Viewers need one.
func (o Options) alone() bool {
	return o.Origin.Size == 1 && !o.launched() && o.Config.View.Listen == ""
}

// started is a rank that has its options.
type started struct {
	Options
	startedAt time.Time
	node      *examine.Node // findings before the join, for launcher doctor; nil in a run
	// keepOn is called before the first sweep. From then on Stop ends the run at a common sweep only. keepOn returns
	// false if Stop has ended before.
	keepOn func() bool
}

// Run takes a rank through its whole life and closes everything that it opened. When it returns an error, the other
// ranks have been told. The error is a *StopError if Stop ended before the first sweep. roster.IsConsequence tells
// whether another rank failed first.
func Run(ctx context.Context, o Options) (solver.Result, error) {
	open := &closers{log: o.Log}
	defer open.close()
	w, err := live(ctx, o, open)
	if err == nil && !o.launched() && w.report != nil {
		err = o.Summarize(*w.report, w.held)
	}
	return w.result, err
}

// live takes a rank through all phases.
func live(ctx context.Context, o Options, open *closers) (written, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := o.start(cancel)
	if err != nil {
		return written{}, err
	}
	j, err := s.meet(ctx, open)
	if err != nil {
		if stop, ok := errors.AsType[*StopError](context.Cause(ctx)); ok {
			return written{}, stop
		}
		return written{}, err
	}
	work := j.run
	switch {
	case s.Probe != nil:
		work = j.probe
	case s.node != nil:
		work = j.examine
	case s.Soak != nil:
		work = j.soak
	}
	w, err := work(j.team.Context(), open)
	if err != nil {
		return w, j.fail(err)
	}
	return w, nil
}

// start returns a rank whose cancel is called when Stop ends, until keepOn is called.
func (o Options) start(cancel context.CancelCauseFunc) (*started, error) {
	s := &started{Options: o, startedAt: time.Now()}
	if o.Examine {
		here, err := examine.Here()
		if err != nil {
			return nil, fmt.Errorf("examine this node: %w", err)
		}
		s.node = &here
	}
	s.keepOn = context.AfterFunc(o.Stop, func() { cancel(context.Cause(o.Stop)) })
	return s, nil
}

// meet takes the phases up to the join. If one fails, the other ranks learn of it when the join times out.
func (s *started) meet(ctx context.Context, open *closers) (*joined, error) {
	p, err := s.prepare(ctx, open)
	if err != nil {
		return nil, err
	}
	c, err := p.connect(ctx, open)
	if err != nil {
		return nil, err
	}
	if err := c.takeMethod(ctx); err != nil {
		return nil, err
	}
	j, err := c.join(ctx, open)
	if err != nil {
		return nil, c.withFault(err)
	}
	return j, nil
}

// setUp takes the phases from the layout to the field.
func (j *joined) setUp(ctx context.Context, open *closers) (*loaded, error) {
	w, err := j.wire(ctx, open)
	if err != nil {
		return nil, err
	}
	return w.load(ctx, open)
}

// wire takes the phases from the layout to the links.
func (j *joined) wire(ctx context.Context, open *closers) (*wired, error) {
	l, err := j.layOut(ctx)
	if err != nil {
		return nil, err
	}
	o, err := l.openBackend(ctx, open)
	if err != nil {
		return nil, err
	}
	return o.wireUp(ctx, open)
}

// run takes the phases from the layout to the outputs.
func (j *joined) run(ctx context.Context, open *closers) (written, error) {
	if err := j.watch(ctx, open); err != nil {
		return written{}, err
	}
	if err := j.openPage(ctx, open); err != nil {
		return written{}, err
	}
	l, err := j.setUp(ctx, open)
	if err != nil {
		return written{}, err
	}
	forecast, err := l.outlook(ctx)
	if err != nil {
		return written{}, err
	}
	r, err := l.prepareOutputs(ctx, open)
	if err != nil {
		return written{}, err
	}
	defer r.abort()
	s, err := r.solve(ctx, forecast, open)
	if err != nil {
		return written{}, err
	}
	w, err := s.write(ctx)
	if err != nil {
		return w, err
	}
	// Until all ranks arrive here, neighbours may ask the links for rows again.
	ctx, cancel := j.withFileTimeout(ctx)
	defer cancel()
	return w, j.team.Barrier(ctx, "end")
}
