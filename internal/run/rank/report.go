package rank

import (
	"context"
	"encoding/json"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
	"jacobi/internal/run/method"
	"jacobi/internal/run/outputs"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// opened is a run whose output files and observers are open.
type opened struct {
	*loaded
	outputs *outputs.Outputs
}

// rankReport returns this rank's part of the report on a run with this result.
func (r *opened) rankReport(result solver.Result) output.RankReport {
	self, s, about := r.comm.Self(), r.layout.Stripe, r.method.About()
	rep := output.RankReport{
		Rank: r.id.Rank, Node: self.NodeID(), Host: self.Host, PID: self.PID, Device: about.Device, GPU: r.chosen,
		Kernel: about.Kernel, Threads: r.threads(),
		Stripe: [2]int{s.Lo, s.Hi}, MemoryBytes: r.memoryBytes(), Transports: map[string]output.LinkReport{},
		Output: r.outputs.Path(), Compute: result.Times.Compute.Seconds(), NormWait: result.Times.NormWait.Seconds(),
	}
	if !r.gpuWaits() {
		rep.HaloWait = new(result.Times.HaloWait.Seconds())
	}
	var err error
	if _, rep.RSSBytes, err = stats.ResidentMemory(); err != nil {
		r.Log.Sugar().Warnf("memory of this process: %v", err)
	}
	if conn, ok := r.conn.(interface{ Refused() uint64 }); ok {
		rep.RefusedMessages = conn.Refused()
	}
	traffic := r.links.Traffic()
	for side, to := range r.beside() {
		info := r.links.Info[side]
		if r.deviceMemory[side].Transport != "" {
			info = r.deviceMemory[side]
		}
		if why := r.whyLink[side]; why != "" {
			info.Why += "; no peer memory: " + why
		}
		link := output.LinkReport{Neighbour: to.Rank, Transport: info.Transport, Why: info.Why}
		if r.deviceMemory[side].Transport != "" {
			link.Traffic = peerTraffic(r.method.PeerTraffic(result.Times.Exchanges, result.Times.Exchanges))
		} else {
			link.Traffic = trafficReport(traffic[side])
		}
		switch info.Transport {
		case halo.TransportNATS:
			link.NATS = r.links.NATSStats(side)
		case halo.TransportDirect:
			link.Direct = r.links.DirectStats(side)
		}
		rep.Transports[side.String()] = link
	}
	return rep
}

// memoryBytes returns the bytes that this rank uses of the memory in which it sweeps.
func (r *loaded) memoryBytes() int64 {
	bytes := r.method.Memory()
	if r.saver != nil && !r.sweepsOnGPU() { // the saver copies the stripe into host memory
		_, arrays := r.method.State()
		bytes += int64(max(1, arrays)) * int64(r.layout.Stripe.Rows()) * int64(r.layout.Mesh.RowBytes())
	}
	return bytes
}

// gpuWaits reports whether the GPU itself waits for the rows of all neighbours. The host cannot measure such waits.
func (r *wired) gpuWaits() bool {
	waits := false
	for side, has := range r.layout.Neighbour {
		if has && r.deviceMemory[side].Transport == "" {
			return false
		}
		waits = waits || has
	}
	return waits
}

// openOutputs opens what the run writes, and who watches it. All ranks call it.
func (r *loaded) openOutputs(ctx context.Context, c coarser) (*opened, error) {
	report, err := r.report()
	if err != nil {
		return nil, err
	}
	o := outputs.Options{Config: r.Config, Log: r.Log, Comm: r.comm, Conn: r.conn, Launched: r.launched(),
		Problem: r.problem, Layout: r.layout, Stripes: r.Stripes, Field: r.method, Start: r.resumed.Start.Iterations,
		Goal: r.goal, Tracer: r.tracer, Report: report, Timeout: r.fileTimeout(),
		OnClose: r.open.add, Correction: r.method.About().Correction,
		Rounding: r.method.About().Rounding, Many: r.Ordered, Hash: r.order.Hash, Stage: r.coarse,
		Places: c.places, Meshes: c.await, MeshTime: c.time, Conductors: r.conductors}
	files, err := outputs.Open(ctx, o)
	return &opened{loaded: r, outputs: files}, err
}

// report returns what is known of the run before its sweeps.
func (r *loaded) report() (output.Report, error) {
	var config json.RawMessage
	if !r.Ordered || r.Config.Output.Report != "" {
		c, err := configs.Redacted(r.Config).Anywhere()
		if err == nil {
			config, err = json.Marshal(c)
		}
		if err != nil {
			return output.Report{}, err
		}
	}
	c, solves := r.Config, r.problem.Setup(r.fixed)
	rep := output.Report{
		Name: c.Run.Name, RunID: r.id.RunID, Version: version.String(), Config: config, Problem: c.Problem.Title(),
		Started: r.startedAt, Mesh: output.NewMeshReport(r.layout.Mesh), Setup: &solves, Depth: r.layout.Depth,
		DepthReason: r.Depth.Why, Balance: r.balance.Why,
		Method: c.Solver.Method, MethodReason: c.Solver.Why,
		MaxIterations: c.Solver.MaxIterations, Tolerance: c.Solver.Tolerance,
		RelativeTolerance: c.Solver.RelativeTolerance, Dir: c.Output.Dir, ResumedAfter: r.resumed.Start.Iterations,
	}
	if !r.order.Alone { // otherwise the other ranks have runs of their own
		rep.Idle = setup.Idle(c, r.working)
	}
	if c.Solver.NormEvery > 1 {
		rep.NormEvery = c.Solver.NormEvery
	}
	return rep, nil
}

// trafficReport returns what went through a link; nil if nothing did.
func trafficReport(t halo.Traffic) *output.TrafficReport {
	if t.Exchanges == 0 {
		return nil
	}
	return &output.TrafficReport{Exchanges: t.Exchanges, Bytes: t.Bytes, LinkTime: &output.LinkTime{
		CopyOut: t.CopyOut.Seconds(), Send: t.Send.Seconds(), Wait: t.Wait.Seconds(), CopyIn: t.CopyIn.Seconds()}}
}

// peerTraffic returns what went over peer memory; nil if nothing did.
func peerTraffic(t method.Traffic) *output.TrafficReport {
	if t.Exchanges == 0 {
		return nil
	}
	return &output.TrafficReport{Exchanges: t.Exchanges, Bytes: t.Sent + t.Received}
}
