package outputs

import (
	"math"

	"jacobi/internal/observe/output"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// report combines the parts of all ranks into the report of the run. Rank 0 calls it.
func (o *Outputs) report(result solver.Result, parts []output.RankReport) output.Report {
	c, times, mesh := o.Config.Solver, result.Times, o.Layout.Mesh
	rep := o.Report
	rep.Ranks, rep.Sweeps, rep.StopReason = parts, result.Iterations, result.Reason
	rep.Converged, rep.Verdict = result.Reason == solver.Converged, c.Verdict(result.Reason)
	rep.Times = output.TimesReport{Setup: o.readyAt.Sub(rep.Started).Seconds(), Sweeps: times.Total.Seconds(),
		Samples: times.Sample.Seconds()}
	rep.GLUPS = output.GLUPS(mesh, c.Entry().Sweeps*(result.Iterations-o.Start), times.Total.Seconds())
	rep.Series, rep.Probes = o.series.report(), o.probes.report()
	if d := result.Decisive; d != nil {
		rep.Decisive = &output.DecisiveReport{Sweep: d.Sweep, Norm: d.Norm}
	}
	if c.RelativeTolerance > 0 {
		rep.Base = result.Base
	}
	if !math.IsNaN(result.Norm) {
		rep.Norm = &result.Norm
		if c.NormEvery > 1 {
			rep.NormSweep = new(o.lastNormed(result))
		}
		if d := o.Problem.Diagonal(); d > 0 {
			rep.Residual = output.NewResidual(result.Norm, rep.Base, d)
		}
	}
	settleWires(parts)
	if _, _, slow := rep.WaitsForNATS(); slow && o.Measured != nil {
		saved := o.Measured.DirectSaves(parts, setup.Depth{Rows: o.Layout.Depth, Sweeps: o.Layout.Sweeps})
		if saved > 0 {
			rep.DirectSaves = &saved
		}
	}
	return rep
}

// lastNormed returns the last sweep that has a norm.
func (o *Outputs) lastNormed(result solver.Result) int {
	return o.Layout.Norms.Sweep(o.Layout.Norms.In(result.Iterations) - 1)
}

// settleWires divides what the two ends of each link saw into the time on the wire and the lateness of a rank. Each
// Turn is of one clock; halo.Split has the formula.
func settleWires(ranks []output.RankReport) {
	for _, k := range ranks {
		for side, facing := range map[solver.Side]solver.Side{solver.Top: solver.Bottom, solver.Bottom: solver.Top} {
			link := k.Transports[side.String()]
			here, there := link.Traffic, ranks[link.Neighbour].Transports[facing.String()].Traffic
			if !here.HasWay() || !there.HasWay() {
				continue
			}
			own, other := here.Turn, there.Turn*float64(here.Exchanges)/float64(there.Exchanges)
			here.Wire, here.Late = new(max(0, (own+other)/2)), new((own-other)/2)
		}
	}
}
