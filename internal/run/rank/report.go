package rank

import (
	"encoding/json"
	"math"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// rankReport returns this rank's part of the report. fault says why its rows are not in the field.
func (r *run) rankReport(result solver.Result, fault error) output.RankReport {
	self, s := r.team.Self(), r.layout.Stripe
	rep := output.RankReport{
		Rank: r.id.Rank, Node: self.NodeID(), Host: self.Host, PID: self.PID, Device: r.describe, GPU: r.chosen,
		Kernel: r.kernel, Threads: r.threads(),
		Stripe: [2]int{s.Lo, s.Hi}, MemoryBytes: r.memoryBytes(), Transports: map[string]output.LinkReport{},
		Output: r.rows.path, Compute: result.Times.Compute.Seconds(), NormWait: result.Times.NormWait.Seconds(),
	}
	if !r.gpuWaits() {
		rep.HaloWait = new(result.Times.HaloWait.Seconds())
	}
	if fault != nil {
		rep.OutputError = fault.Error()
	}
	var err error
	if _, rep.RSSBytes, err = stats.ResidentMemory(); err != nil {
		r.Log.Sugar().Warnf("memory of this process: %v", err)
	}
	if conn, ok := r.conn.(interface{ Refused() uint64 }); ok {
		rep.RefusedMessages = conn.Refused()
	}
	nats, traffic := r.links.Stats(), r.links.Traffic()
	for side, has := range r.layout.Neighbour {
		if !has {
			continue
		}
		info := r.links.Info[side]
		if r.direct[side].Transport != "" {
			info = r.direct[side]
		}
		if why := r.indirect[side]; why != "" {
			info.Why += "; no peer memory: " + why
		}
		link := output.LinkReport{Neighbour: r.neighbour(solver.Side(side)).Rank, Transport: info.Transport,
			Why: info.Why}
		if r.direct[side].Transport != "" {
			link.Traffic = r.peerTraffic(result.Times.Exchanges)
			if r.levels != nil {
				link.Traffic = trafficOf(r.levels.direct.Traffic())
			}
		} else {
			link.Traffic = trafficReport(traffic[side], !r.sweepsOnGPU()) // on a GPU goroutines wait while it sweeps
		}
		if s := nats[side]; s != nil && info.Transport == halo.TransportNATS {
			link.NATS = (*output.NATSReport)(s)
		}
		if s := r.links.DirectStats(solver.Side(side)); s != nil && info.Transport == halo.TransportDirect {
			link.Direct = (*output.DirectReport)(s)
		}
		rep.Transports[solver.Side(side).String()] = link
	}
	return rep
}

// memoryBytes returns the bytes that this rank uses of the memory in which it sweeps.
func (r *run) memoryBytes() int64 {
	var bytes int64
	if r.levels != nil {
		bytes = r.levels.device.Bytes()
		if r.levels.search != nil {
			bytes += r.levels.search.Bytes()
		}
	} else {
		bytes = r.backend.Limits().Bytes
	}
	if r.saver != nil && !r.sweepsOnGPU() { // the saver copies the stripe into host memory
		bytes += int64(max(1, r.arrays())) * int64(r.layout.Stripe.Rows()) * int64(r.layout.Mesh.RowBytes())
	}
	return bytes
}

// gpuWaits reports whether the GPU itself waits for the rows of all neighbours. The host cannot measure such waits.
func (r *run) gpuWaits() bool {
	waits := false
	for side, has := range r.layout.Neighbour {
		if has && r.direct[side].Transport == "" {
			return false
		}
		waits = waits || has
	}
	return waits
}

// report combines the parts of all ranks into the report of the run. Rank 0 calls it.
func (r *run) report(parts []output.RankReport, hash string) (output.Report, error) {
	config, err := json.Marshal(configs.Redacted(r.Config))
	if err != nil {
		return output.Report{}, err
	}
	c := r.Config
	total := r.result.Times.Total
	var decisive *output.DecisiveReport
	if d := r.result.Decisive; d != nil {
		decisive = &output.DecisiveReport{Sweep: d.Sweep, Norm: d.Norm}
	}
	solves := r.problem.Setup(r.fixed)
	rep := output.Report{
		Name: c.Run.Name, RunID: r.id.RunID, Version: version.String(), Config: config, Problem: c.Problem.Title(),
		Started: r.startedAt, Mesh: output.NewMeshReport(r.layout.Mesh), Setup: &solves, Depth: r.layout.Depth,
		DepthReason: r.Depth.Why, Balance: r.balance.Why, Idle: c.Idle(),
		Ranks:  parts,
		Method: c.Solver.Method, MethodReason: c.Solver.Why, Accelerated: r.levels != nil && r.levels.search != nil,
		Sweeps: r.result.Sweeps, MaxIterations: c.Solver.MaxIterations,
		Tolerance: c.Solver.Tolerance, RelativeTolerance: c.Solver.RelativeTolerance,
		StopReason: r.result.Reason, Converged: r.result.Reason == solver.Converged,
		Verdict:  c.Solver.Verdict(r.result.Reason),
		Decisive: decisive,
		Times: output.TimesReport{Setup: r.readyAt.Sub(r.startedAt).Seconds(), Sweeps: total.Seconds(),
			Samples: r.result.Times.Sample.Seconds()},
		GLUPS:       output.GLUPS(r.layout.Mesh, r.sweepsOf(r.result.Sweeps-r.resumed.Start.Sweeps), total.Seconds()),
		FieldSHA256: hash, Dir: c.Output.Dir,
		ResumedAfter: r.resumed.Start.Sweeps, Checkpoints: r.checkpointReport(r.result.Times),
		Series: r.series.Report(), Probes: r.probes.Report(),
	}
	if c.Solver.RelativeTolerance > 0 {
		rep.Base = r.result.Base
	}
	if norm := r.result.Norm; !math.IsNaN(norm) {
		rep.Norm = &norm
	}
	if c.Solver.NormEvery > 1 {
		rep.NormEvery = c.Solver.NormEvery
		if rep.Norm != nil {
			rep.NormSweep = new(r.lastNormed())
		}
	}
	settleWires(rep.Ranks)
	if _, _, slow := rep.WaitsForNATS(); slow && r.measured != nil {
		saved := r.measured.DirectSaves(rep.Ranks, setup.Depth{Rows: r.layout.Depth, Sweeps: r.Sweeps})
		if saved > 0 {
			rep.DirectSaves = &saved
		}
	}
	return rep, nil
}

// sweepsOf returns the sweeps of the mesh in the given number of iterations.
func (o Options) sweepsOf(iterations int) int {
	return o.Config.Solver.Entry().Sweeps * iterations
}

// lastNormed returns the last sweep that has a norm.
func (r *run) lastNormed() int {
	return r.layout.Norms.Sweep(r.layout.Norms.In(r.result.Sweeps) - 1)
}
