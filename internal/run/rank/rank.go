// Package rank is the life of one rank, from the start of its process to its end. A session is what belongs to the
// start: connection, devices, the other ranks. A job belongs to one problem: that of the configuration, or
// those that a launcher orders, one after the other (orders.go). The life has phases. The first ones fill the session,
// and enter fills the run; each later phase of a job takes what phases before it have made, and makes more of it:
//
//	connect      session   the run's id and the connection to its server      connect.go
//	takeMethod   session   the method, of a checkpoint where it is left open  connect.go
//	openDevices  session   the devices of the node                            device.go
//	meet         session   the other ranks                                    rank.go, join.go
//	enter        run       the problem, on which all ranks agree, and         job.go, layout.go,
//	                       the place among them with a share of the cores     join.go
//	solveMatrix  run       output.matrix, by runs of their own                conductors.go
//	layOut       divided   the stripes and the depth                          layout.go, internal/run/tune
//	solveCoarser coarser   the coarser meshes, by runs of their own           coarser.go
//	openMethod   equipped  the GPU, if one sweeps, and the method             layout.go, device.go
//	wireUp       wired     the exchange with neighbours, the sum over ranks   links.go, windows.go
//	load         loaded    the field, and the saver of checkpoints            load.go
//	openOutputs  opened    the output files and the observers                 report.go, internal/run/outputs
//	solve                  the result of the sweeps                           solve.go
//
// At last internal/run/outputs writes the outputs and the report.
//
// A rank with a task goes as far as enter, and the task says how it goes on (job.go, internal/tools/tasks). An
// idle rank goes as far and waits for the end. Each phase adds what it opens to the closers of its session or job. A
// rank that fails tells the others first and closes then.
package rank

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/setup"
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

// session is what a rank has of its start, which outlives a job.
type session struct {
	Options
	open closers // of what belongs to the start
	// keepOn is called before the first sweep. From then on Stop ends a job at a common sweep only. keepOn returns
	// false if Stop has ended before.
	keepOn func() bool
	self   roster.Member             // what the others know of this rank
	all    *roster.Comm              // of all ranks that have started
	share  float64                   // of the node's cores, where jobs are ordered
	known  map[string]results.Fluxes // of solutions for single regions; see run.excited

	connection
	devices
}

// devices are those of the node, and the one that this rank has taken.
type devices struct {
	gpus    *device.Node      // WhyCPU is nil if a GPU sweeps; nil for an idle rank
	offered *setup.GPUs       // those of gpus; nil if the CPU sweeps
	chosen  *output.GPUReport // nil if the CPU sweeps
	sole    bool              // no other rank uses the GPU
	taken   bool              // takeGPU is done
}

// start returns a session whose cancel is called when Stop ends, until keepOn is called.
func (o Options) start(cancel context.CancelCauseFunc) *session {
	return &session{Options: o, known: map[string]results.Fluxes{}, open: closers{log: o.Log},
		keepOn: sync.OnceValue(context.AfterFunc(o.Stop, func() { cancel(context.Cause(o.Stop)) }))}
}

// newRun returns a job of the session, of which no phase is done.
func (s *session) newRun(job configs.Planned) *run {
	return &run{session: s, Config: job.Config, open: closers{log: s.Log}, startedAt: time.Now(),
		ctx: s.all.Context(), keepOn: s.keepOn, prepared: prepared{planned: job.Contents},
		membership: membership{id: s.self.Identity, comm: s.all, working: s.Origin.Size}}
}

// arrive takes what belongs to the start: the connection, the devices, and the other ranks. If it fails, the others
// learn of it when their join times out.
func (s *session) arrive(ctx context.Context) error {
	return inTurn(ctx, s.connect, s.takeMethod, s.openDevices, s.meet)
}

// meet returns once all ranks have joined. From then on they watch over each other.
func (s *session) meet(ctx context.Context) error {
	self, err := s.describe()
	if err != nil {
		return err
	}
	comm, err := roster.Join(ctx, s.conn, self, s.Config.Halo.Timeout)
	if err != nil {
		return fmt.Errorf("rank %d: %w", self.Rank, err)
	}
	s.open.add(func() error { comm.Close(); return nil })
	s.all, s.self = comm, comm.Self()
	if s.retract != nil {
		if err := s.retract(); err != nil {
			return fmt.Errorf("remove the rendezvous file: %w", err)
		}
	}
	if err := comm.KeepAlive(s.Config.Run.Liveness); err != nil {
		return fmt.Errorf("rank %d: %w", self.Rank, err)
	}
	return nil
}

// closers close what the phases of a rank have opened. A phase that fails leaves its part to them, because the other
// ranks have to know of the failure before they see this rank's connections and memory go.
type closers struct {
	log   *zap.Logger
	funcs []func() error // in the order of opening
}

// add enters f, which closes what was opened last.
func (c *closers) add(f func() error) { c.funcs = append(c.funcs, f) }

// close closes everything, newest first. It does not report errors that follow from a lost CUDA context, which every
// call returns and which has been reported.
func (c *closers) close() {
	for i := len(c.funcs) - 1; i >= 0; i-- {
		if err := c.funcs[i](); err != nil && !errors.Is(err, driver.ErrContextLost) {
			c.log.Warn("close", zap.Error(err))
		}
	}
	c.funcs = c.funcs[:0]
}

// fail tells the other ranks why this one ends, and returns the error to report for err.
func (r *run) fail(err error) error {
	err = r.blame(err)
	// After a signal that ends the run of a launcher, the launcher has signalled all ranks, and reports the end.
	if _, stop := errors.AsType[*StopError](err); !stop || !r.launched() || r.Ordered {
		if told := r.comm.Abort(err); told != nil {
			r.Log.Warn("the other ranks could not be told", zap.Error(told))
		}
	}
	return fmt.Errorf("rank %d: %w", r.id.Rank, err)
}

// blame returns the cause of err. The cause of the job's end replaces it: the abort of another rank, the silence of a
// rank or the server, or a request to stop before the first sweep.
func (r *run) blame(err error) error {
	cause := context.Cause(r.ctx)
	if abort, ok := errors.AsType[*roster.AbortError](cause); ok {
		return abort
	}
	if silent, ok := errors.AsType[*roster.SilentError](cause); ok {
		return silent
	}
	if silent, ok := errors.AsType[*roster.ServerError](cause); ok {
		return silent
	}
	if errors.Is(cause, roster.ErrStopped) || errors.Is(cause, roster.ErrCancelled) {
		return cause
	}
	return r.namingTimeout(r.withFault(err))
}

// namingTimeout adds to the error of a wait that took too long the key that sets for how long ranks wait.
func (o *Options) namingTimeout(err error) error {
	_, told := errors.AsType[*roster.AbortError](err)
	if told || !roster.IsConsequence(err) || strings.Contains(err.Error(), "halo.timeout") {
		return err
	}
	return fmt.Errorf("%w (halo.timeout %v)", err, o.Config.Halo.Timeout)
}

// withFault adds a known fault of the connection to the error of a wait that it may explain. The result is no longer a
// consequence of another rank's failure.
func (c *connection) withFault(err error) error {
	_, told := errors.AsType[*roster.AbortError](err)
	if c.fault == nil || told || !roster.IsConsequence(err) {
		return err
	}
	if fault := c.fault(); fault != nil {
		return fmt.Errorf("%v; %v", err, fault)
	}
	return err
}

// StopError is the error of a rank that a signal stopped before its first sweep.
type StopError struct{ Signal syscall.Signal }

// Error implements error.
func (e *StopError) Error() string {
	return fmt.Sprintf("stopped by %s before the first sweep", unix.SignalName(e.Signal))
}

// Unwrap makes errors.Is(err, roster.ErrStopped) true.
func (e *StopError) Unwrap() error { return roster.ErrStopped }

// stopRequested returns a function that reports whether this rank should stop: Stop has ended, or the launcher has
// asked all ranks to stop.
func (r *run) stopRequested() func() bool {
	stop, asked := r.Stop, r.comm.StopRequested()
	return func() bool { return stop.Err() != nil || asked.Err() != nil }
}

// untilStopped has cancel called when Stop ends or the launcher cancels the job. After keepOn it is not called any
// more: a job that sweeps stops at a common sweep. keepOn returns false if it was called before.
func (o *Options) untilStopped(comm *roster.Comm, cancel context.CancelCauseFunc) (keepOn func() bool) {
	stop := context.AfterFunc(o.Stop, func() { cancel(context.Cause(o.Stop)) })
	asked := context.AfterFunc(comm.StopRequested(), func() { cancel(roster.ErrCancelled) })
	return sync.OnceValue(func() bool { return stop() && asked() })
}

// stopped returns the cause of the end of a job whose keepOn has returned false.
func (r *run) stopped() error {
	<-r.ctx.Done() // at once
	return context.Cause(r.ctx)
}

// slowDisk is the speed, in bytes a second, of the slowest file system that a run supports.
const slowDisk = 10 << 20

// withFileTimeout bounds a step in which ranks wait for each other's files.
func (r *run) withFileTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return awake.WithTimeout(ctx, r.fileTimeout())
}

// fileTimeout is halo.timeout plus the time for writing the whole field to a slow disk.
func (r *run) fileTimeout() time.Duration {
	mesh := r.problem.Mesh()
	bytes := time.Duration(mesh.NY) * time.Duration(mesh.RowBytes())
	return r.Config.Halo.Timeout + bytes/slowDisk*time.Second
}
