package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/desk"
	"jacobi/internal/run/method"
	"jacobi/internal/run/outputs"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// run is one job of a session. enter fills the problem and the place among the ranks.
type run struct {
	*session
	Config    configs.Config // of the job; that of the session belongs to the start
	open      closers        // of what the phases of the job have opened
	startedAt time.Time
	order     desk.Order      // of a job that was ordered
	coarse    bool            // the job is a stage of another one
	places    *outputs.Places // where a stage returns the values of its field
	values    []float64       // of the regions that float; nil before they are found
	// conductors are what solutions for single regions have given.
	conductors outputs.Conductors
	// ctx is that of the job. It ends when the job is stopped before its first sweep; keepOn then returns false, and
	// is called before that sweep.
	ctx    context.Context
	keepOn func() bool

	prepared
	membership
}

// written is the end of a job.
type written struct {
	result  solver.Result
	report  *output.Report   // of the job; rank 0 only
	outputs *outputs.Outputs // nil on an idle rank
}

// only does the job of the configuration, which ends with the session.
func (s *session) only() (solver.Result, error) {
	r := s.newRun(configs.Planned{Config: s.Config, Contents: s.Contents})
	defer r.open.close()
	w, err := r.among(s.all)
	if _, refused := errors.AsType[*roster.RefusedError](err); refused {
		return w.result, err // that of all ranks
	}
	if err != nil {
		return w.result, r.fail(err)
	}
	if !r.launched() && w.report != nil {
		err = r.Summarize(*w.report, w.outputs.Held())
	}
	missed := r.Config.Solver.Verdict(w.result.Reason) == configs.Missed
	if err == nil && missed && !r.launched() && r.Origin.Size > 1 {
		r.leave()
	}
	return w.result, err
}

// among does the job among the ranks of comm.
func (r *run) among(comm *roster.Comm) (w written, err error) {
	if err := r.enter(r.ctx, comm); err != nil {
		return w, err
	}
	return r.work(r.ctx)
}

// work does what this rank has in the job, once its ranks have agreed on it.
func (r *run) work(ctx context.Context) (written, error) {
	switch {
	case r.idle():
		return r.awaitEnd(ctx)
	case r.Task != nil:
		result, err := r.Task(ctx, &Member{Config: r.Config, Problem: r.problem, Comm: r.comm,
			Launched: r.launched(), GPUs: r.gpus, Cores: r.cores, run: r})
		return written{result: result}, err
	}
	return r.solveAll(ctx)
}

// enter takes the phases in which the ranks of comm agree on the job and take their places. If some cannot take part,
// all get the same *roster.RefusedError.
func (r *run) enter(ctx context.Context, comm *roster.Comm) error {
	r.comm, r.id, r.working = comm, r.self.Identity, min(r.Origin.Size, r.Config.Working())
	if text := r.Config.Idle(); text != "" && r.Origin.Rank == 0 && !r.launched() { // a launcher starts no idle ranks
		r.Log.Info(text)
	}
	share, fault := r.prepare(ctx)
	if fault != nil && ctx.Err() != nil {
		return fault // nobody is left to agree with
	}
	united, err := roster.AgreeOn(ctx, comm, share, fault, r.unite)
	if err != nil {
		return err
	}
	if err := r.problem.Adopt(united.Contents); err != nil {
		return err
	}
	if err := r.uniteIslands(ctx, united.Islands); err != nil {
		return err
	}
	r.problem.TakeOff(united.Taken)
	if err := r.takePlace(comm); err != nil || r.idle() || r.Task != nil || united.Values != nil ||
		!r.Config.Problem.Floats() {
		return err
	}
	return r.float(ctx)
}

// wire takes the phases from the layout to the links.
func (r *run) wire(ctx context.Context) (*wired, error) {
	divided, err := r.layOut(ctx)
	if err != nil {
		return nil, err
	}
	return divided.wire(ctx)
}

// wire takes the phases from the method to the links.
func (r *divided) wire(ctx context.Context) (*wired, error) {
	equipped, err := r.openMethod(ctx)
	if err != nil {
		return nil, err
	}
	return equipped.wireUp(ctx)
}

// openAll takes the phases from the layout to the outputs, which the caller ends with Abort.
func (r *run) openAll(ctx context.Context) (*opened, error) {
	divided, err := r.layOut(ctx)
	if err != nil {
		return nil, err
	}
	meshes, err := divided.solveCoarser(ctx)
	if err != nil {
		return nil, err
	}
	wired, err := divided.wire(ctx)
	if err != nil {
		return nil, err
	}
	loaded, err := wired.load(ctx)
	if err != nil {
		return nil, err
	}
	return loaded.openOutputs(ctx, meshes)
}

// solveAll solves the job: it takes all phases, writes the outputs, and waits for the other ranks.
func (r *run) solveAll(ctx context.Context) (written, error) {
	if err := inTurn(ctx, r.watch, r.openPage); err != nil {
		return written{}, err
	}
	if err := r.solveMatrix(ctx); err != nil {
		return written{}, err
	}
	o, err := r.openAll(ctx)
	if err != nil {
		return written{}, err
	}
	defer o.outputs.Abort()
	w := written{outputs: o.outputs}
	if w.result, err = o.solve(ctx); err != nil {
		return written{}, err
	}
	w.report, err = o.outputs.Write(ctx, w.result, o.checkpointReport(w.result),
		func() output.RankReport { return o.rankReport(w.result) })
	if err != nil {
		return w, r.onGPU(err)
	}
	// Until all ranks arrive here, neighbours may ask the links for rows again.
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	return w, r.end(ctx, w.result)
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

// spare reports whether this rank is known to be idle before it meets the others.
func (s *session) spare() bool { return !s.Ordered && s.Origin.Rank >= s.Config.Working() }

// idle reports whether this rank has no rows.
func (r *run) idle() bool { return r.Origin.Rank >= r.working }

// leaveIdle leaves ranks on other nodes idle, as all ranks find with what rank 0 has told of its GPUs; see
// setup.Working. A task needs all ranks, and between jobs there is no problem.
func (r *run) leaveIdle(comm *roster.Comm) error {
	if r.Task != nil || r.problem == nil {
		return nil
	}
	first := comm.Member(0)
	e, err := extraOf(first)
	if err != nil || e.GPUs == nil {
		return err
	}
	near := 1
	for _, g := range comm.Groups() {
		switch {
		case g.First.Device != string(setup.GPU):
			return nil
		case g.First.Rank <= near && roster.InOneMemory(first, g.First) && roster.SharesDevices(first, g.First):
			near = g.End
		}
	}
	n, err := setup.Working(r.Config, r.problem.Mesh(), r.problem.Operator(), r.working, near, *e.GPUs)
	if err != nil || n == r.working {
		return err
	}
	r.working = n
	comm.SetWorking(n)
	if r.Origin.Rank == 0 {
		r.Log.Info(setup.Idle(r.Config, n))
	}
	return nil
}

// ending is what the idle ranks are told of the end of the run, from which their exit code follows.
type ending struct {
	Reason solver.StopReason `json:"reason"`
	Norm   roster.Number     `json:"norm"`
	// Refused says why the run has no iterations; "" for others.
	Refused string `json:"refused,omitempty"`
}

// awaitEnd waits on an idle rank until the working ranks have ended the run, and returns their result. A request to
// stop goes on to them.
func (r *run) awaitEnd(ctx context.Context) (w written, err error) {
	if !r.keepOn() {
		return w, r.stopped()
	}
	defer context.AfterFunc(r.Stop, func() {
		if err := roster.RequestStop(ctx, r.conn, r.runID, 0); err != nil && ctx.Err() == nil {
			r.Log.Sugar().Warnf("the request to stop did not reach the other ranks: %v", err)
		}
	})()
	data, err := r.comm.AwaitEnd(ctx, "end")
	if err != nil {
		return w, err
	}
	var e ending
	if err := json.Unmarshal(data, &e); err != nil {
		return w, fmt.Errorf("end of the run: %w", err)
	}
	if e.Refused != "" {
		return w, &roster.RefusedError{Text: e.Refused}
	}
	w.result.Reason, w.result.Norm = e.Reason, float64(e.Norm)
	return w, nil
}

// end returns when all working ranks have arrived, and tells the idle ones how the run has ended.
func (m *membership) end(ctx context.Context, result solver.Result) error {
	if err := m.comm.Barrier(ctx, "end"); err != nil {
		return err
	}
	data, err := json.Marshal(ending{Reason: result.Reason, Norm: roster.Number(result.Norm)})
	if err != nil {
		return err
	}
	return m.comm.End(ctx, "end", data)
}

// Task is what the working ranks of a run do once they have met, in place of solving.
type Task func(ctx context.Context, m *Member) (solver.Result, error)

// Member is a rank that has met the others, for its Task.
type Member struct {
	Config   configs.Config
	Problem  *problem.Problem
	Comm     *roster.Comm
	Launched bool         // by a launcher
	GPUs     *device.Node // of this rank's node
	Cores    float64      // this rank's share of the node's cores

	run *run
}

// Wired is what a rank has that can exchange rows with its neighbours.
type Wired struct {
	Layout   solver.Layout
	Backend  solver.Backend
	Exchange solver.Exchange
	Device   string            // for reports
	Driver   *driver.Driver    // nil if the CPU sweeps
	GPU      *output.GPUReport // nil if the CPU sweeps
	Sole     bool              // no other rank uses the GPU
	CPU      cpu.Options       // of a backend with this rank's share of the cores
}

// OnClose has f called when the rank ends, before what was opened earlier is closed.
func (m *Member) OnClose(f func() error) { m.run.open.add(f) }

// Connected reports whether there is a server of the run. A rank alone has none.
func (m *Member) Connected() bool { return m.run.conn != nil }

// Dial opens a connection of its own to the server of the run.
func (m *Member) Dial(ctx context.Context) (pubsub.Conn, error) { return m.run.dialLink(ctx) }

// KeepOn is called before the first sweep. It returns the cause of a request to stop that has come before.
func (m *Member) KeepOn() error {
	if !m.run.keepOn() {
		return m.run.stopped()
	}
	return nil
}

// StopRequested returns a function that reports whether this rank should stop.
func (m *Member) StopRequested() func() bool { return m.run.stopRequested() }

// Wire takes the phases from the layout to the links.
func (m *Member) Wire(ctx context.Context) (*Wired, error) {
	w, err := m.run.wire(ctx)
	if err != nil {
		return nil, err
	}
	sweeps := w.method.(*method.Sweeps) // no task takes another method
	return &Wired{Layout: w.layout, Backend: sweeps.Backend, Exchange: sweeps.Exchange,
		Device: sweeps.Device, Driver: w.gpus.Driver, GPU: w.chosen, Sole: w.sole, CPU: w.cpuOptions()}, nil
}

// Try takes all phases before the sweeps, and returns what this rank would report. It calls loaded before there are
// output files; undo removes them.
func (m *Member) Try(ctx context.Context, loaded func() error) (report output.RankReport, undo func(), err error) {
	wired, err := m.run.wire(ctx)
	if err != nil {
		return report, nil, err
	}
	l, err := wired.load(ctx)
	if err != nil {
		return report, nil, err
	}
	if err := loaded(); err != nil {
		return report, nil, err
	}
	o, err := l.openOutputs(ctx, coarser{})
	if err != nil {
		return report, nil, err
	}
	return o.rankReport(solver.Result{}), o.outputs.Abort, nil
}

// End returns when all working ranks have arrived, and tells the idle ones how the run has ended.
func (m *Member) End(ctx context.Context, result solver.Result) error {
	return m.run.end(ctx, result)
}

// Blame returns the cause of err: the failure of another rank, or err itself.
func (m *Member) Blame(err error) error { return m.run.blame(err) }
