package rank

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/output"
	"jacobi/internal/version"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// rankReport returns this rank's part of the report. fault says why its rows are not in the field.
func (r *ready) rankReport(result solver.Result, fault error) output.RankReport {
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
	if rep.RSSBytes, err = peakResident(); err != nil {
		r.Log.Sugar().Warnf("memory of this process: %v", err)
	}
	if conn, ok := r.conn.(interface{ Refused() uint64 }); ok {
		rep.RefusedMessages = conn.Refused()
	}
	stats, traffic := r.links.Stats(), r.links.Traffic()
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
		if s := stats[side]; s != nil && info.Transport == halo.TransportNATS {
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
func (l *loaded) memoryBytes() int64 {
	var bytes int64
	if l.levels != nil {
		bytes = l.levels.device.Bytes()
		if l.levels.search != nil {
			bytes += l.levels.search.Bytes()
		}
	} else {
		bytes = l.backend.Limits().Bytes
	}
	if l.saver != nil && !l.sweepsOnGPU() { // the saver copies the stripe into host memory
		bytes += int64(max(1, l.arrays())) * int64(l.layout.Stripe.Rows()) * int64(l.layout.Mesh.RowBytes())
	}
	return bytes
}

// gpuWaits reports whether the GPU itself waits for the rows of all neighbours. The host cannot measure such waits.
func (w *wired) gpuWaits() bool {
	waits := false
	for side, has := range w.layout.Neighbour {
		if has && w.direct[side].Transport == "" {
			return false
		}
		waits = waits || has
	}
	return waits
}

// report combines the parts of all ranks into the report of the run. Rank 0 calls it.
func (s *solved) report(parts [][]byte, hash string) (output.Report, error) {
	config, err := json.Marshal(configs.Redacted(s.Config))
	if err != nil {
		return output.Report{}, err
	}
	c := s.Config
	total := s.result.Times.Total
	var decisive *output.DecisiveReport
	if d := s.result.Decisive; d != nil {
		decisive = &output.DecisiveReport{Sweep: d.Sweep, Norm: d.Norm}
	}
	setup := s.problem.Setup(s.fixed)
	rep := output.Report{
		Name: c.Run.Name, RunID: s.id.RunID, Version: version.String(), Config: config, Problem: c.Problem.Preset,
		Started: s.startedAt, Mesh: output.NewMeshReport(s.layout.Mesh), Setup: &setup, Depth: s.layout.Depth,
		DepthReason: s.whyDepth, Balance: s.balance.Why,
		Ranks:  make([]output.RankReport, len(parts)),
		Method: c.Solver.Method, MethodReason: c.Solver.Why,
		Sweeps: s.result.Sweeps, MaxIterations: c.Solver.MaxIterations,
		Tolerance: c.Solver.Tolerance, RelativeTolerance: c.Solver.RelativeTolerance,
		StopReason: s.result.Reason, Converged: s.result.Reason == solver.Converged,
		Decisive: decisive, Accuracy: s.accuracy(),
		Times: output.TimesReport{Setup: s.readyAt.Sub(s.startedAt).Seconds(), Sweeps: total.Seconds(),
			Samples: s.result.Times.Sample.Seconds()},
		GLUPS:       output.GLUPS(s.layout.Mesh, s.sweepsOf(s.result.Sweeps-s.resumed.Start.Sweeps), total.Seconds()),
		FieldSHA256: hash, Dir: c.Output.Dir,
		ResumedAfter: s.resumed.Start.Sweeps, Checkpoints: s.checkpointReport(s.result.Times),
		Series: s.series.report(), Probes: s.probes.report(),
	}
	if norm := s.result.Norm; !math.IsNaN(norm) {
		rep.Norm = &norm
	}
	if c.Solver.NormEvery > 1 {
		rep.NormEvery = c.Solver.NormEvery
		if rep.Norm != nil {
			rep.NormSweep = new(s.lastNormed())
		}
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, &rep.Ranks[i]); err != nil {
			return rep, fmt.Errorf("report of rank %d: %w", i, err)
		}
	}
	settleWires(rep.Ranks)
	if _, _, slow := rep.WaitsForNATS(); slow && s.measured != nil {
		saved := s.measured.directSaves(rep.Ranks, haloDepth{Rows: s.layout.Depth, Sweeps: s.passSweeps})
		if saved > 0 {
			rep.DirectSaves = &saved
		}
	}
	return rep, nil
}

// sweepsOf returns the sweeps of the mesh in the given number of iterations.
func (p *prepared) sweepsOf(iterations int) int {
	if p.Config.Solver.Multigrid() {
		return 2 * multigrid.Sweeps * iterations
	}
	return iterations
}

// lastNormed returns the last sweep that has a norm.
func (s *solved) lastNormed() int { return s.norms().Sweep(s.norms().In(s.result.Sweeps) - 1) }

// accuracy estimates the error of the field.
func (s *solved) accuracy() *output.AccuracyReport {
	if s.result.Sweeps == 0 || math.IsNaN(s.result.Norm) || !s.forecast.Known() {
		return nil
	}
	best := s.forecast.Attainable(s.layout.Mesh.DType)
	if s.Config.Solver.Multigrid() || s.Config.Solver.Chebyshev() {
		return &output.AccuracyReport{Error: s.forecast.CycleError(s.result.Norm), Bound: true,
			Attainable: best.Error, Norm: best.Norm, Scale: s.forecast.Largest()}
	}
	rep := &output.AccuracyReport{
		Error:      s.forecast.Error(s.lastNormed()+1, s.result.Norm),
		Attainable: best.Error, Norm: best.Norm, Scale: s.forecast.Largest(),
	}
	if better, ok := s.forecast.Better(s.Config.Solver.Tolerance); ok {
		rep.Better = better.String()
	}
	return rep
}

// peakResident returns the peak resident memory of this process in bytes, as the kernel reports it.
func peakResident() (int64, error) {
	status, err := os.ReadFile(processStatus)
	if err != nil {
		return 0, err
	}
	if peak, ok := statusBytes(status, "VmHWM"); ok {
		return peak, nil
	}
	return 0, fmt.Errorf("%s has no VmHWM", processStatus)
}
