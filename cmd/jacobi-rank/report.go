package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/output"
	"jacobi/internal/version"
	"jacobi/solver"
)

// rankReport returns this rank's part of the report.
func (o *outputs) rankReport(result solver.Result) output.RankReport {
	self, s := o.team.Self(), o.layout.Stripe
	rep := output.RankReport{
		Rank: o.id.Rank, Node: self.NodeID, Host: self.Host, PID: self.PID, Device: o.describe, GPU: o.chosen,
		Kernel: o.kernel, Threads: o.threads(),
		Stripe: [2]int{s.Lo, s.Hi}, MemoryBytes: o.memoryBytes(), Transports: map[string]output.LinkReport{},
		Output: o.path, Compute: result.Times.Compute.Seconds(), NormWait: result.Times.NormWait.Seconds(),
	}
	if !o.gpuWaits() {
		rep.HaloWait = new(result.Times.HaloWait.Seconds())
	}
	if o.rowFault != nil {
		rep.OutputError = o.rowFault.Error()
	}
	var err error
	if rep.RSSBytes, err = peakResident(); err != nil {
		o.log.Sugar().Warnf("memory of this process: %v", err)
	}
	stats := o.links.Stats()
	for side, has := range o.layout.Neighbour {
		if !has {
			continue
		}
		info := o.links.Info[side]
		if o.direct[side].Transport != "" {
			info = o.direct[side]
		}
		if why := o.indirect[side]; why != "" {
			info.Why += "; no peer memory: " + why
		}
		neighbour := (o.id.Rank + 2*side - 1 + o.id.Size) % o.id.Size
		link := output.LinkReport{Neighbour: neighbour, Transport: info.Transport, Why: info.Why}
		if s := stats[side]; s != nil && info.Transport == halo.TransportNATS {
			link.NATS = (*output.NATSReport)(s)
		}
		rep.Transports[solver.Side(side).String()] = link
	}
	return rep
}

// memoryBytes returns the bytes that this rank uses of the memory in which it sweeps.
func (o *outputs) memoryBytes() int64 {
	bytes := o.backend.Limits().Bytes
	if o.saver != nil && o.gpu == nil { // the saver copies the stripe into host memory
		bytes += int64(o.layout.Stripe.Rows()) * int64(o.layout.Mesh.RowBytes())
	}
	return bytes
}

// gpuWaits reports whether the GPU itself waits for the rows of all neighbours. The host cannot measure such waits.
func (o *outputs) gpuWaits() bool {
	waits := false
	for side, has := range o.layout.Neighbour {
		if has && o.direct[side].Transport == "" {
			return false
		}
		waits = waits || has
	}
	return waits
}

// report combines the parts of all ranks into the report of the run. Rank 0 calls it.
func (o *outputs) report(result solver.Result, parts [][]byte, hash string) (output.Report, error) {
	config, err := json.Marshal(configs.Redacted(o.cfg))
	if err != nil {
		return output.Report{}, err
	}
	c := o.cfg
	norm := result.Norm
	var decisive *output.DecisiveReport
	if d := result.Decisive; d != nil {
		decisive = &output.DecisiveReport{Sweep: d.Sweep, Norm: d.Norm}
	}
	rep := output.Report{
		Name: c.Run.Name, RunID: o.id.RunID, Version: version.String(), Config: config, Problem: c.Problem.Preset,
		Started: o.started, Mesh: output.NewMeshReport(o.layout.Mesh), Depth: o.layout.Depth,
		Ranks:  make([]output.RankReport, len(parts)),
		Sweeps: result.Sweeps, MaxIterations: c.Solver.MaxIterations, Tolerance: c.Solver.Tolerance,
		StopReason: result.Reason, Converged: result.Reason == solver.Converged,
		Norm: &norm, Decisive: decisive, Accuracy: o.accuracy(result),
		Times:       output.TimesReport{Setup: o.ready.Sub(o.started).Seconds(), Sweeps: result.Times.Total.Seconds()},
		GLUPS:       output.GLUPS(o.layout.Mesh, result.Sweeps-o.resumed.Start.Sweeps, result.Times.Total.Seconds()),
		FieldSHA256: hash, Dir: c.Output.Dir,
		ResumedAfter: o.resumed.Start.Sweeps, Checkpoints: o.checkpointReport(result.Times),
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, &rep.Ranks[i]); err != nil {
			return rep, fmt.Errorf("report of rank %d: %w", i, err)
		}
	}
	return rep, nil
}

// accuracy estimates the error of the field.
func (o *outputs) accuracy(result solver.Result) *output.AccuracyReport {
	if result.Sweeps == 0 {
		return nil
	}
	best := o.outlook.Attainable(o.layout.Mesh.DType)
	rep := &output.AccuracyReport{
		Error:      o.outlook.Error(result.Sweeps, result.Norm),
		Attainable: best.Error, Norm: best.Norm, Scale: o.outlook.Largest(),
	}
	if better, ok := o.outlook.Better(o.cfg.Solver.Tolerance); ok {
		rep.Better = better.String()
	}
	return rep
}

// peakResident returns the peak resident memory of this process in bytes, as the kernel reports it.
func peakResident() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
