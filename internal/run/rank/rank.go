// Package rank is the life of one rank, from the start of its process to its end. A session is what belongs to the
// start: connection, devices, the other ranks (session.go). A run belongs to one problem. The life has phases, each a
// method of one of the two, which fill its parts one after the other:
//
//	prepare         the problem                                        prepare.go
//	connect         the run's id and the connection to its server      connect.go, server.go
//	join            the devices, the other ranks, a share of the cores join.go, session.go, device.go, cores.go
//	layOut          the stripes and the depth                          layout.go, internal/run/tune
//	openMethod      the GPU, if one sweeps, and the method             gpu.go, sharing.go, method.go
//	wireUp          the exchange with neighbours, the sum over ranks   wire.go, links.go, windows.go
//	load            the field, and the saver of checkpoints            load.go, goal.go, saver.go
//	openOutputs     the output files and the observers                 report.go, internal/run/outputs
//	solve           the result of the sweeps                           solve.go, stats.go
//
// At last internal/run/outputs writes the outputs and the report.
//
// A rank with a task goes as far as join, and the task says how it goes on (task.go, internal/tools/tasks). An idle
// rank goes as far as join and waits for the end (idle.go). The phases enter what they open into the closers of their
// session or run (closers.go).
// A rank that fails tells the others first and closes then (blame.go).
package rank

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/desk"
	"jacobi/internal/run/outputs"
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
	// Task, if not nil, is what the ranks do in place of solving.
	Task Task
	// Stats makes the rank publish statistics while it sweeps.
	Stats bool
	// Watch, if not nil, is called on rank 0 of a run that no launcher started, with the events of all ranks.
	Watch func(roster.Event)
	// Viewed is called on rank 0 of a run that no launcher started, with the URL of its page, if there is one.
	Viewed func(url string)
	// Summarize is called on rank 0 of a run that no launcher started, once the outputs are written. outputs holds
	// output.dir; it is nil if the run writes no file.
	Summarize func(report output.Report, outputs *output.Held) error
	// Linger, if not nil, is called after Summarize where the other ranks wait for rank 0 to end.
	Linger func()
}

// launched reports whether a launcher started the rank.
func (o Options) launched() bool { return o.Origin.By == roster.ByLauncher }

// alone reports whether the rank is a run of its own, without a server. Viewers need one.
func (o Options) alone() bool {
	return o.Origin.Size == 1 && !o.launched() && o.Config.View.Listen == ""
}

// run is what a rank has of one run on its session. The phases fill it, each a part of its own.
type run struct {
	*session
	Config    configs.Config // of the run; that of the session belongs to the start
	open      closers        // of what the phases of the run have opened
	startedAt time.Time
	order     desk.Order // of one of many runs

	prepared
	membership
	division
	opened
	wires
	state
	outputs *outputs.Outputs
	solution
}

// written is the end of a rank.
type written struct {
	result solver.Result
	report *output.Report // of the run; rank 0 only
	held   *output.Held   // output.dir, on rank 0 of a run without a launcher; otherwise nil
	leave  func()         // called once the summary is printed; nil if ranks may end one by one
}

// Run takes a rank through its whole life and closes everything that it opened. When it returns an error, the other
// ranks have been told. The error is a *StopError if Stop ended before the first sweep. roster.IsConsequence tells
// whether another rank failed first.
func Run(ctx context.Context, o Options) (solver.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := o.start(cancel)
	r := s.newRun(o.Config)
	defer s.open.close()
	defer r.open.close()
	defer cancel(nil)
	w, err := r.live(ctx)
	if err == nil && !o.launched() && w.report != nil {
		err = o.Summarize(*w.report, w.held)
	}
	if err == nil && w.leave != nil {
		w.leave()
	}
	return w.result, err
}

// live takes a rank through all phases.
func (r *run) live(ctx context.Context) (written, error) {
	if err := r.arrive(ctx); err != nil {
		if stop, ok := errors.AsType[*StopError](context.Cause(ctx)); ok {
			return written{}, stop
		}
		return written{}, r.namingTimeout(err)
	}
	work := r.solveAll
	switch {
	case r.idle():
		work = r.awaitEnd
	case r.Task != nil:
		work = r.task
	}
	w, err := work(r.comm.Context())
	if err != nil {
		return w, r.fail(err)
	}
	if !r.launched() && r.Origin.Size > 1 && r.Config.Solver.Verdict(w.result.Reason) == configs.Missed {
		w.leave = r.leave
	}
	return w, nil
}

// leave closes what the run has opened, and waits until all ranks have. A scheduler may kill the other ranks as soon as
// one has ended with a code other than 0, so rank 0 has to be done by then. A rank that does not come is no fault any
// more.
func (r *run) leave() {
	if r.id.Rank == 0 && r.Linger != nil {
		r.Linger()
	}
	r.open.close()
	ctx, cancel := awake.WithTimeout(r.comm.Context(), r.fileTimeout()+r.Config.Metrics.Linger)
	defer cancel()
	if r.idle() {
		_, _ = r.comm.AwaitEnd(ctx, "leave")
	} else if r.comm.Barrier(ctx, "leave") == nil {
		_ = r.comm.End(ctx, "leave", nil)
	}
}

// inTurn goes through phases until one fails.
func inTurn(ctx context.Context, phases ...func(context.Context) error) error {
	for _, p := range phases {
		if err := p(ctx); err != nil {
			return err
		}
	}
	return nil
}

// arrive takes the phases up to the join. If one fails, the other ranks learn of it when the join times out.
func (r *run) arrive(ctx context.Context) error {
	if err := inTurn(ctx, r.prepare, r.connect, r.takeMethod); err != nil {
		return err
	}
	return r.withFault(r.join(ctx))
}

// wire takes the phases from the layout to the links.
func (r *run) wire(ctx context.Context) error {
	return inTurn(ctx, r.layOut, r.openMethod, r.wireUp)
}

// solveAll takes the phases from the layout to the outputs.
func (r *run) solveAll(ctx context.Context) (written, error) {
	err := inTurn(ctx, r.watch, r.openPage, r.wire, r.load, r.foresee, r.openOutputs)
	if err != nil {
		return written{}, err
	}
	defer r.outputs.Abort()
	if err := r.solve(ctx); err != nil {
		return written{}, err
	}
	w := written{result: r.result, held: r.outputs.Held()}
	if w.report, err = r.outputs.Write(ctx, w.result, r.checkpointReport(), r.rankReport); err != nil {
		return w, r.onGPU(err)
	}
	// Until all ranks arrive here, neighbours may ask the links for rows again.
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	return w, r.end(ctx, w.result)
}
