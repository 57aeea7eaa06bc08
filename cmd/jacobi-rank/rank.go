package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/halo"
	"jacobi/internal/awake"
	"jacobi/internal/checkpoint"
	"jacobi/internal/device"
	"jacobi/internal/examine"
	"jacobi/internal/outlook"
	"jacobi/internal/output"
	"jacobi/internal/problem"
	"jacobi/internal/roster"
	"jacobi/internal/version"
	"jacobi/internal/wire"
	"jacobi/solver"
)

// rank holds the parts of one rank.
type rank struct {
	id    roster.Identity
	by    string // what started the rank
	job   string // the scheduler's name for the run; may be empty
	alone bool   // a run of one rank, without a server
	cfg   configs.Config
	log   *zap.Logger
	stop  context.Context // ends with the signal to stop
	// ready is called before the first sweep. From then on a signal ends the run at a common sweep only. ready returns
	// false if a signal has come before.
	ready func() bool
	end   context.CancelCauseFunc // ends this rank
	node  *examine.Node           // findings before the start, for launcher doctor; nil in a run

	problem *problem.Problem
	conn    halo.Conn    // nil for a rank alone
	wire    wire.Options // options of conn
	fault   func() error // returns a known fault of conn; nil for a rank alone

	removeRendezvous func() error // removes the rendezvous file; nil if this rank published none

	team     *roster.Team
	stripes  []solver.Stripe // of all ranks
	layout   solver.Layout
	cores    float64 // this rank's share of the node's cores
	gpus     *device.Node
	chosen   *output.GPUReport // the GPU that sweeps; nil if the CPU does
	soleGPU  bool              // no other rank uses the GPU
	backend  solver.Backend
	gpu      *cuda.Backend // backend, if that is a *cuda.Backend
	describe string
	kernel   string // of the CPU
	links    *halo.Links
	exchange solver.Exchange
	direct   [2]halo.Info // by side: how rows travel without a link; empty if they use a link
	indirect [2]string    // by side: why a rank with a GPU uses a link and not peer memory
	reducer  solver.Reducer
	resumed  *checkpoint.State // state from which the run goes on; the zero State for the initial field
	saver    *checkpoint.Saver // nil if no state is saved
	started  time.Time

	outlook  *outlook.Outlook // rank 0 only
	held     *output.Held     // output.dir, on rank 0 of a run without a launcher; otherwise nil
	finished *output.Report   // rank 0 only, at the end

	closers []func() error // in the order of opening
}

// newRank returns a rank that calls end if its server refuses a permission that it needs.
func newRank(o roster.Origin, cfg configs.Config, log *zap.Logger, stop context.Context,
	end context.CancelCauseFunc) *rank {
	r := &rank{id: o.Identity, by: o.By, job: o.Job, cfg: cfg, log: log, stop: stop, end: end}
	r.alone = o.Size == 1 && o.By != roster.ByLauncher
	if r.alone && r.id.RunID == "" {
		r.id.RunID = cmp.Or(o.Job, roster.Alone)
	}
	return r
}

// solve does the whole run. When it returns an error, the other ranks have been told.
func (r *rank) solve(ctx context.Context) (solver.Result, error) {
	r.started = time.Now()
	if r.by == roster.ByLauncher && os.Getenv(examine.Env) != "" {
		here, err := examine.Here()
		if err != nil {
			return solver.Result{}, fmt.Errorf("examine this node: %w", err)
		}
		r.node = &here
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.ready = context.AfterFunc(r.stop, func() { cancel(context.Cause(r.stop)) })
	if err := r.join(ctx); err != nil {
		if stop, ok := errors.AsType[*stopped](context.Cause(ctx)); ok {
			return solver.Result{}, stop
		}
		return solver.Result{}, r.withFault(err)
	}
	work := r.solveInTeam
	if r.node != nil {
		work = r.examine
	}
	result, err := work(r.team.Context())
	if err != nil {
		err = r.blame(err)
		if told := r.abortOthers(err); told != nil {
			r.log.Warn("the other ranks could not be told", zap.Error(told))
		}
		return result, fmt.Errorf("rank %d: %w", r.id.Rank, err)
	}
	return result, nil
}

// abortOthers tells the other ranks why this one ends. After a signal under a launcher it does nothing: the launcher
// has signalled all ranks, and it reports the end of the run.
func (r *rank) abortOthers(err error) error {
	if _, stop := errors.AsType[*stopped](err); stop && r.by == roster.ByLauncher {
		return nil
	}
	return r.team.Abort(err)
}

// open takes the steps of the start up to the outputs.
func (r *rank) open(ctx context.Context) error {
	r.resumed = &checkpoint.State{}
	for _, step := range []func(context.Context) error{r.layOut, r.takeGPU, r.openBackend, r.openExchange,
		r.openReducer, r.loadField, r.openSaver} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *rank) solveInTeam(ctx context.Context) (solver.Result, error) {
	if err := r.open(ctx); err != nil {
		return solver.Result{}, err
	}
	if r.id.Rank == 0 {
		var err error
		if r.outlook, err = outlook.New(ctx, r.problem); err != nil {
			return solver.Result{}, err
		}
	}
	out, err := r.prepareOutputs(ctx)
	if err != nil {
		return solver.Result{}, err
	}
	defer out.abort()
	if err := out.addNorms(r.resumed.Norms); err != nil {
		return solver.Result{}, err
	}
	var say func(string)
	if r.by != roster.ByLauncher {
		say = func(line string) { r.log.Info(line) }
	}
	if !r.ready() {
		return solver.Result{}, context.Cause(r.stop)
	}
	course := outlook.NewCourse(r.outlook, r.cfg.Solver.Tolerance, r.cfg.Solver.MaxIterations)
	progress := newProgress(r.team, r.layout.Mesh, r.resumed.Start.Sweeps, r.cfg.Solver.MaxIterations, course,
		awake.Of(ctx), say)
	recorder := newRecorder(func(first int, norms []float64) error {
		progress.norms(first, norms)
		return out.addNorms(norms)
	})
	defer recorder.close(ctx)
	result, err := solver.Run(ctx, r.backend, r.exchange, r.reducer, solver.Options{
		Initial:       r.problem,
		Start:         r.resumed.Start,
		Magnitude:     r.layout.Magnitude,
		Depth:         r.layout.Depth,
		MaxSweeps:     r.maxSweeps(),
		Tolerance:     r.cfg.Solver.Tolerance,
		MaxIterations: r.cfg.Solver.MaxIterations,
		Stop:          r.stopRequested,
		Saver:         r.solverSaver(),
		SaveEvery:     r.cfg.Checkpoint.Every.Sweeps,
		OnNorms: func(first int, norms []float64) error {
			r.team.SetSweeps(first + len(norms))
			if r.id.Rank != 0 {
				return nil
			}
			if r.saver != nil {
				r.saver.AddNorms(norms)
			}
			return recorder.add(ctx, first, norms)
		},
	})
	if err != nil {
		return result, r.onGPU(err)
	}
	if err := recorder.close(ctx); err != nil {
		return result, err
	}
	progress.last(result)
	if err := r.finishSaver(ctx, result); err != nil {
		return result, err
	}
	if err := out.write(ctx, result); err != nil {
		return result, r.onGPU(err)
	}
	// Until all ranks arrive here, neighbours may ask the links for rows again.
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	return result, r.team.Barrier(ctx, "end")
}

// slowDisk is the speed, in bytes a second, of the slowest file system that a run supports.
const slowDisk = 10 << 20

// withFileTimeout bounds a step in which ranks wait for each other's files.
func (r *rank) withFileTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return awake.WithTimeout(ctx, r.fileTimeout())
}

// fileTimeout is halo.timeout plus the time for writing the whole field to a slow disk.
func (r *rank) fileTimeout() time.Duration {
	mesh := r.problem.Mesh()
	bytes := time.Duration(mesh.NY) * time.Duration(mesh.RowBytes())
	return r.cfg.Halo.Timeout + bytes/slowDisk*time.Second
}

// join connects this rank to its run and checks that all ranks agree.
func (r *rank) join(ctx context.Context) (err error) {
	if r.problem, err = problem.New(r.cfg); err != nil {
		return err
	}
	r.onClose(r.problem.Close)
	if r.by != roster.ByLauncher && r.id.Rank == 0 { // a launcher gives these warnings itself
		for _, text := range r.problem.Warnings() {
			r.log.Warn(text)
		}
	}
	stripes, err := solver.Partition(r.problem.Mesh().Interior(), r.id.Size, max(1, r.cfg.Halo.Depth))
	if err != nil {
		return err
	}
	if err := r.findDevice(); err != nil {
		return err
	}
	mesh, stripe := r.problem.Mesh(), stripes[r.id.Rank]
	maxAbs, err := r.problem.MaxAbs(ctx, stripe.Lo-1, stripe.Hi+1)
	if err != nil {
		return err
	}
	firstRows, err := r.problem.RowsHash(ctx)
	if err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	node, err := nodeID()
	if err != nil {
		r.log.Info("this node cannot be identified: no shared memory with other ranks", zap.Error(err))
	}
	extra, err := r.extra()
	if err != nil {
		return err
	}
	r.team, err = roster.Join(ctx, r.conn, roster.Member{
		Identity: r.id, Version: version.String(), ConfigHash: configs.Hash(r.cfg), Host: host, PID: os.Getpid(),
		Functions: problem.FunctionsHash(), FirstRows: firstRows, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		NodeID: node, Device: r.deviceName(), MaxAbs: maxAbs, Depth: r.preferredDepth(mesh),
		MaxSweeps: r.maxPassSweeps(mesh), Extra: extra,
	}, r.cfg.Halo.Timeout)
	if err != nil {
		return fmt.Errorf("rank %d: %w", r.id.Rank, err)
	}
	r.onClose(func() error { r.team.Close(); return nil })
	r.id = r.team.Self().Identity // the join has set the local rank and size
	if r.cores, err = shareOfCores(r.team.Members(), r.id.Rank); err != nil {
		return err
	}
	if r.removeRendezvous != nil {
		if err := r.removeRendezvous(); err != nil {
			return fmt.Errorf("remove the rendezvous file: %w", err)
		}
	}
	if err := r.team.KeepAlive(r.cfg.Run.Liveness); err != nil {
		return fmt.Errorf("rank %d: %w", r.id.Rank, err)
	}
	return nil
}

func (r *rank) stopRequested() bool {
	if r.stop.Err() != nil {
		return true
	}
	select {
	case <-r.team.StopRequested():
		return true
	default:
		return false
	}
}

// withFault adds a known fault of the connection to the error of a wait that it may explain. The result is no longer a
// consequence of another rank's failure.
func (r *rank) withFault(err error) error {
	_, told := errors.AsType[*roster.AbortError](err)
	if r.fault == nil || told || !roster.IsConsequence(err) {
		return err
	}
	if fault := r.fault(); fault != nil {
		return fmt.Errorf("%v; %v", err, fault)
	}
	return err
}

// blame returns the error to report for err. The cause of the team's end replaces it: the abort of another rank, the
// silence of a rank or the server, or a signal before the first sweep.
func (r *rank) blame(err error) error {
	cause := context.Cause(r.team.Context())
	if abort, ok := errors.AsType[*roster.AbortError](cause); ok {
		return abort
	}
	if silent, ok := errors.AsType[*roster.SilentError](cause); ok {
		return silent
	}
	if silent, ok := errors.AsType[*roster.ServerError](cause); ok {
		return silent
	}
	if stop, ok := errors.AsType[*stopped](cause); ok {
		return stop
	}
	return r.withFault(err)
}

func (r *rank) onClose(f func() error) { r.closers = append(r.closers, f) }

// close closes everything that was opened, newest first. It does not report errors that follow from a lost CUDA
// context, which every call returns and which has been reported.
func (r *rank) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		if err := r.closers[i](); err != nil && !errors.Is(err, driver.ErrContextLost) {
			r.log.Warn("close", zap.Error(err))
		}
	}
}
