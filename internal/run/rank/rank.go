// Package rank is the life of one rank, from the start of its process to its end. A session is what belongs to the
// start: connection, devices, the other ranks (session.go). A job belongs to one problem: that of the configuration, or
// those that a launcher orders, one after the other (orders.go). The life has phases, each a method of one of the two,
// which fill its parts one after the other:
//
//	connect         the run's id and the connection to its server      connect.go, server.go
//	openDevices     the devices of the node                            device.go
//	meet            the other ranks                                    session.go, join.go
//	prepare         the problem, on which all ranks then agree         prepare.go, job.go
//	takePlace       the place among the ranks, a share of the cores    join.go, idle.go, cores.go
//	layOut          the stripes and the depth                          layout.go, internal/run/tune
//	openMethod      the GPU, if one sweeps, and the method             gpu.go, sharing.go, method.go
//	wireUp          the exchange with neighbours, the sum over ranks   wire.go, links.go, windows.go
//	load            the field, and the saver of checkpoints            load.go, goal.go, saver.go
//	openOutputs     the output files and the observers                 report.go, internal/run/outputs
//	solve           the result of the sweeps                           solve.go, stats.go
//
// At last internal/run/outputs writes the outputs and the report.
//
// A rank with a task goes as far as takePlace, and the task says how it goes on (task.go, internal/tools/tasks). An
// idle rank goes as far and waits for the end (idle.go). The phases enter what they open into the closers of their
// session or job (closers.go).
// A rank that fails tells the others first and closes then (blame.go).
package rank

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Options are what a rank is started with.
type Options struct {
	Origin  roster.Origin
	Environ []string // "NAME=value", as of os.Environ; tells whether the scheduler's ranks are all on this node
	Config  configs.Config
	// Contents are those of the files of Config's problem with which a launcher has planned the run; nil without one.
	Contents map[string]string
	Log      *zap.Logger
	// Stop ends with the request to stop. Before the first sweep the rank then ends with the cause, a *StopError.
	// Later all ranks stop after a common sweep.
	Stop context.Context
	// End ends the context that Run is given. It is called if the server refuses a permission that the rank needs.
	End context.CancelCauseFunc
	// Ordered has the rank do what its launcher orders, in place of the job of Config.
	Ordered bool
	// Task, if not nil, is what the ranks do in place of solving.
	Task Task
	// Check, if not nil, is called on rank 0 of a run that no launcher has checked, before the job begins.
	Check func(context.Context, configs.Config) (configs.Planned, error)
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

// Run takes a rank through its whole life and closes everything that it opened. When it returns an error, the other
// ranks have been told. The error is a *StopError if Stop ended before the first sweep. roster.IsConsequence tells
// whether another rank failed first.
func Run(ctx context.Context, o Options) (solver.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := o.start(cancel)
	defer s.open.close()
	defer cancel(nil)
	if err := s.arrive(ctx); err != nil {
		if stop, ok := errors.AsType[*StopError](context.Cause(ctx)); ok {
			return solver.Result{}, stop
		}
		return solver.Result{}, s.namingTimeout(s.withFault(err))
	}
	if !o.Ordered {
		return s.only()
	}
	result, err := s.obey(s.all.Context())
	if err != nil {
		err = s.newRun(configs.Planned{Config: s.Config}).fail(err)
	}
	return result, err
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
