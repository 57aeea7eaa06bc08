package outputs

import (
	"math"

	"jacobi/internal/compute/accuracy"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// nearness is what one rank knows about the error of the field.
type nearness struct {
	accuracy.Part
	Correction float64 `json:"correction"` // that the next cycle would make
}

// accuracy states the error of the field from what all ranks know of it, or says why it is unknown.
func (o *Outputs) accuracy(f found, result solver.Result) *output.AccuracyReport {
	n := f.nearness
	switch {
	case f.fault != "":
		return &output.AccuracyReport{Why: "there are no results"}
	case n == nil:
		return &output.AccuracyReport{Why: "output.results is false"}
	case math.IsNaN(result.Norm):
		return &output.AccuracyReport{Why: "no sweep has a norm"}
	}
	a := accuracy.Run{Mesh: o.Layout.Mesh, Operator: o.Layout.Operator, Norm: result.Norm, Largest: n.Largest}
	if o.Correction == nil {
		a.Later = result.Iterations - o.lastNormed(result)
	}
	if a.Operator.Weighted {
		a.Open = o.Comm.Whole().Open
		return o.weighted(a, n.Correction, f.off, result)
	}
	correction := accuracy.OfCycle * n.Correction
	if o.Correction == nil {
		correction = a.Correction(n.Part)
	}
	about, rounded := a.About(correction), a.Rounded()
	rep := &output.AccuracyReport{Error: &about, Rounding: a.Norm <= a.Floor()}
	switch hidden := o.Correction != nil && rep.Rounding; {
	case hidden && math.IsInf(rounded, 1):
		rep.Error, rep.Why = nil, "only points inside the mesh determine the constant"
	case hidden && rounded > about:
		rep.Error, rep.ByRounding = &rounded, true
	}
	return rep
}

// weighted states the error of the field of a weighted operator. After cycles with conjugate gradients the estimate
// follows from the largest change that the last of them has made, and from what all values together are off, which no
// change shows where rounding has made it; otherwise there is none.
func (o *Outputs) weighted(a accuracy.Run, change, off float64, result solver.Result) *output.AccuracyReport {
	rep := &output.AccuracyReport{Rounding: a.Norm <= a.Floor()}
	accelerated := o.Correction != nil && o.Config.Solver.Accelerated(true)
	about, rounded := a.OfChange(change, o.fall)+off, a.Rounded()
	unknown := math.IsInf(about, 1)
	switch {
	case !accelerated:
		rep.Why = "points have coefficients of their own"
	case result.Iterations == 0:
		rep.Why = "no cycle was done"
	case rep.Rounding && math.IsInf(rounded, 1):
		rep.Why = "only rounding is left of the norm"
	case rep.Rounding && (unknown || rounded > about):
		rep.Error, rep.ByRounding = &rounded, true
	case unknown:
		rep.Why = "the cycles have not reduced the norm"
	default:
		rep.Error, rep.Uncertain = &about, a.Operator.Contrast > accuracy.Sure
	}
	return rep
}
