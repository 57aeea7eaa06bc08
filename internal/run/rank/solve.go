package rank

import (
	"context"
	"time"

	"jacobi/halo"
	"jacobi/internal/observe/progress"
	"jacobi/internal/observe/stats"
	"jacobi/internal/observe/view"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// progressOptions returns the options of the progress of the run.
func (r *loaded) progressOptions() progress.Options {
	c, m := r.Config.Solver, r.layout.Mesh
	o := progress.Options{Comm: r.comm, Points: float64(m.NX) * float64(m.NY) * float64(c.Entry().SweepsPerIteration),
		Start: r.resumed.Start.Iterations, Max: c.MaxIterations, Step: r.step(), Cadence: r.layout.Norms, Goal: r.goal,
		Mute: r.Ordered && !r.order.Progress}
	if !r.launched() {
		o.Say = func(line string) { r.Log.Info(line) }
	}
	return o
}

// solve sweeps until the run ends, and completes the history of norms and the last checkpoint. All ranks call it.
func (r *opened) solve(ctx context.Context) (result solver.Result, err error) {
	if err := r.outputs.AddNorms(r.resumed.Norms); err != nil {
		return result, err
	}
	if !r.keepOn() {
		return result, r.stopped()
	}
	shown := progress.Start(ctx, r.progressOptions())
	recorder := progress.NewRecorder(func(first int, norms []float64) error {
		shown.Norms(first, norms)
		return r.outputs.AddNorms(norms)
	})
	defer recorder.Close(ctx)
	reporter := r.startStats()
	result, err = r.sweep(ctx, reporter.OnStep(r.tracer.OnStep()),
		func(first int, norms []float64) error { return recorder.Add(ctx, first, norms) }, shown.Swept)
	if err != nil {
		return result, r.onGPU(err)
	}
	if err := recorder.Close(ctx); err != nil {
		return result, err
	}
	shown.Last(result)
	if err := r.finishSaver(ctx, result); err != nil {
		return result, err
	}
	if err := r.outputs.Finish(ctx, result); err != nil {
		return result, r.onGPU(err)
	}
	reporter.Finish(result)
	r.outputs.Report.Aggregates = r.method.Aggregates()
	return result, nil
}

// sweep runs the method. onStep gets the steps of this rank; on rank 0, record gets the norms, and swept the iterations
// done where most have no norm.
func (r *opened) sweep(ctx context.Context, onStep solver.OnStep, record func(first int, norms []float64) error,
	swept func(done int)) (solver.Result, error) {
	sums := solver.NewReductions(r.reducer, &solver.Watch{OnStep: onStep})
	it, err := r.method.Iteration(r.resumed.Start.Iterations, r.initial, sums)
	if err != nil {
		return solver.Result{}, err
	}
	comm, saver, first := r.comm, r.saver, r.id.Rank == 0 // the callbacks run once a pass
	var saves solver.Saver                                // a nil interface, not a nil *checkpoint.Saver
	if saver != nil {
		saves = saver
	}
	return solver.Drive(ctx, it, sums, solver.Options{
		Start:         r.resumed.Start,
		Magnitude:     r.layout.Magnitude,
		Goal:          r.goal,
		MaxIterations: r.Config.Solver.MaxIterations,
		Stop:          r.stopRequested(),
		Saver:         saves,
		SaveEvery:     r.Config.Checkpoint.Every.Iterations,
		Samples:       r.outputs.Samples(),
		OnPass: func(done int) {
			comm.SetIterations(done)
			if first && r.layout.Norms.Stride > 1 {
				swept(done)
			}
		},
		OnNorms: func(iteration int, norms []float64) error {
			if !first {
				return nil
			}
			if saver != nil {
				saver.AddNorms(norms)
			}
			return record(iteration, norms)
		},
	})
}

// watch lets Options.Watch have the events of the run.
func (r *run) watch(ctx context.Context) error {
	if r.Watch == nil || r.launched() || r.id.Rank != 0 {
		return nil
	}
	stop, err := r.comm.Watch(ctx, r.Watch)
	if err == nil {
		r.open.add(func() error { stop(); return nil })
	}
	return err
}

// startStats starts the statistics of a run whose sweeps begin now; nil if nobody wants any.
func (r *loaded) startStats() *stats.Reporter {
	if !r.Stats {
		return nil
	}
	s := r.layout.Stripe
	o := stats.Options{Comm: r.comm, Step: r.step(), Max: r.Config.Solver.MaxIterations, HostWaits: !r.gpuWaits(),
		Points: float64(s.Rows()) * float64(r.layout.Mesh.NX) * float64(r.Config.Solver.Entry().SweepsPerIteration),
		Add:    r.addStats,
		Rank: stats.Rank{Host: r.comm.Self().Host, Backend: string(r.device()), Device: r.method.About().Device,
			Stripe: [2]int{s.Lo, s.Hi}, Start: r.resumed.Start.Iterations,
			Memory: stats.Memory{Field: r.memoryBytes()}}}
	if g := r.chosen; g != nil {
		o.GPU = &stats.GPU{Index: g.Index, Name: g.Name, UUID: g.UUID}
	}
	reporter := stats.Start(o)
	r.open.add(reporter.Close)
	return reporter
}

// addStats adds what links, connection and saver count.
func (r *loaded) addStats(s *stats.Rank, posted, received uint64) {
	s.Halos = r.haloStats(posted, received)
	if conn, ok := r.conn.(interface{ Refused() uint64 }); ok {
		s.RefusedMessages = conn.Refused()
	}
	if r.saver != nil && r.id.Rank == 0 {
		s.Checkpoints = new(r.saver.Stats())
	}
}

// step returns what the sweeps of an event count; see roster.Event.
func (r *run) step() string {
	if unit := r.Config.Solver.Step(); unit != methods.Sweep {
		return unit
	}
	return ""
}

// haloStats returns the traffic with the neighbours after a number of exchanges in which rows were sent and received.
func (r *wired) haloStats(posted, received uint64) (all []stats.Halo) {
	traffic := r.links.Traffic()
	for side, to := range r.beside() {
		h := stats.Halo{Side: side.String(), Neighbour: to.Rank, Transport: r.links.Info[side].Transport,
			Sent: traffic[side].Sent, Received: traffic[side].Bytes - traffic[side].Sent}
		if t := r.deviceMemory[side].Transport; t != "" { // the GPU copies the rows
			moved := r.method.PeerTraffic(posted, received)
			h.Transport, h.Sent, h.Received = t, moved.Sent, moved.Received
		} else if s := r.links.DirectStats(side); s != nil && h.Transport == halo.TransportDirect {
			h.Asked, h.Resent, h.Refused, h.Lost = s.Asked, s.Resent, s.Refused, s.Lost
		} else if s := r.links.NATSStats(side); s != nil {
			h.Asked, h.Resent, h.Duplicates, h.Refused = s.Asked, s.Resent, s.Duplicates, s.Refused
			h.Lost = s.Lost + s.Dropped
		}
		all = append(all, h)
	}
	return all
}

// pageGrace bounds the time in which open pages are given the end of the run.
const pageGrace = 2 * time.Second

// openPage serves the page of the run on rank 0, if the configuration wants one and no launcher serves it.
func (r *run) openPage(ctx context.Context) error {
	at := r.Config.View.Listen
	if r.id.Rank != 0 || r.launched() || at == "" {
		return nil
	}
	server, err := view.Listen(at)
	if err != nil {
		return err
	}
	board := view.NewBoard()
	live := view.NewLive(board)
	r.open.add(func() error { server.Close(pageGrace); live.Close(); return nil })
	detach, err := live.Attach(ctx, r.comm.Conn(), r.id.RunID)
	if err != nil {
		return err
	}
	r.open.add(func() error {
		detach()
		live.EndIn(r.Config.Output.Dir)
		server.Linger(r.comm.Context(), func(text string) { r.Log.Info(text) })
		return nil
	})
	server.Serve(board, live)
	r.Viewed(server.URL())
	return nil
}
