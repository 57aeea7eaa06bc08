package rank

import (
	"context"

	"jacobi/halo"
	"jacobi/internal/observe/stats"
	"jacobi/solver"
	"jacobi/solver/methods"
)

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
func (r *run) startStats() *stats.Reporter {
	if !r.Stats {
		return nil
	}
	s := r.layout.Stripe
	o := stats.Options{Comm: r.comm, Step: r.step(), Max: r.Config.Solver.MaxIterations, HostWaits: !r.gpuWaits(),
		Points: float64(s.Rows()) * float64(r.layout.Mesh.NX) * float64(r.sweepsOf(1)), Add: r.addStats,
		Rank: stats.Rank{Host: r.comm.Self().Host, Backend: r.deviceName(), Device: r.method.About().Device,
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
func (r *run) addStats(s *stats.Rank, posted, received uint64) {
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
func (r *run) haloStats(posted, received uint64) (all []stats.Halo) {
	traffic, nats := r.links.Traffic(), r.links.Stats()
	for side, has := range r.layout.Neighbour {
		if !has {
			continue
		}
		h := stats.Halo{Side: solver.Side(side).String(), Neighbour: r.neighbour(solver.Side(side)).Rank,
			Transport: r.links.Info[side].Transport, Sent: traffic[side].Sent,
			Received: traffic[side].Bytes - traffic[side].Sent}
		if t := r.deviceMemory[side].Transport; t != "" { // the GPU copies the rows
			moved := r.method.PeerTraffic(posted, received)
			h.Transport, h.Sent, h.Received = t, moved.Sent, moved.Received
		} else if s := r.links.DirectStats(solver.Side(side)); s != nil && h.Transport == halo.TransportDirect {
			h.Asked, h.Resent, h.Refused, h.Lost = s.Asked, s.Resent, s.Refused, s.Lost
		} else if s := nats[side]; s != nil {
			h.Asked, h.Resent, h.Duplicates, h.Refused = s.Asked, s.Resent, s.Duplicates, s.Refused
			h.Lost = s.Lost + s.Dropped
		}
		all = append(all, h)
	}
	return all
}
