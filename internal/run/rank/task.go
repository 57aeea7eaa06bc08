package rank

import (
	"context"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/halo"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/method"
	"jacobi/solver"
)

// Task is what the working ranks of a run do once they have met, in place of solving.
type Task func(ctx context.Context, m *Member) (solver.Result, error)

// Member is a rank that has met the others, for its Task.
type Member struct {
	Config   configs.Config
	Log      *zap.Logger
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
	Sweeps   int // the most of a pass
	Backend  solver.Backend
	Exchange solver.Exchange
	Device   string            // for reports
	Driver   *driver.Driver    // nil if the CPU sweeps
	GPU      *output.GPUReport // nil if the CPU sweeps
	Sole     bool              // no other rank uses the GPU
	CPU      cpu.Options       // of a backend with this rank's share of the cores
}

// task has the ranks do their Task.
func (r *run) task(ctx context.Context) (w written, err error) {
	w.result, err = r.Task(ctx, &Member{Config: r.Config, Log: r.Log, Problem: r.problem, Comm: r.comm,
		Launched: r.launched(), GPUs: r.gpus, Cores: r.cores, run: r})
	return w, err
}

// OnClose has f called when the rank ends, before what was opened earlier is closed.
func (m *Member) OnClose(f func() error) { m.run.open.add(f) }

// Connected reports whether there is a server of the run. A rank alone has none.
func (m *Member) Connected() bool { return m.run.conn != nil }

// Dial opens a connection of its own to the server of the run.
func (m *Member) Dial(ctx context.Context) (halo.OwnConn, error) { return m.run.dialLink(ctx) }

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
	w := m.run
	if err := w.wire(ctx); err != nil {
		return nil, err
	}
	sweeps := w.method.(*method.Sweeps) // no task takes another method
	return &Wired{Layout: w.layout, Sweeps: w.Sweeps, Backend: sweeps.Backend, Exchange: sweeps.Exchange,
		Device: sweeps.Device, Driver: w.gpus.Driver, GPU: w.chosen, Sole: w.sole, CPU: w.cpuOptions()}, nil
}

// Try takes all phases before the sweeps, and returns what this rank would report. It calls loaded before there are
// output files; undo removes them.
func (m *Member) Try(ctx context.Context, loaded func() error) (report output.RankReport, undo func(), err error) {
	r := m.run
	if err := inTurn(ctx, r.wire, r.load); err != nil {
		return report, nil, err
	}
	if err := loaded(); err != nil {
		return report, nil, err
	}
	if err := r.openOutputs(ctx); err != nil {
		return report, nil, err
	}
	return r.rankReport(), r.outputs.Abort, nil
}

// End returns when all working ranks have arrived, and tells the idle ones how the run has ended.
func (m *Member) End(ctx context.Context, result solver.Result) error {
	return m.run.end(ctx, result)
}

// Blame returns the cause of err: the failure of another rank, or err itself.
func (m *Member) Blame(err error) error { return m.run.blame(err) }
