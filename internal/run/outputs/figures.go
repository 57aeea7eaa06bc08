package outputs

import (
	"context"
	"fmt"
	"math"
	"time"

	"jacobi/internal/compute/accuracy"
	"jacobi/internal/compute/problem"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// figures are what the report says of the finished field besides its norm: results, accuracy and residual. They need
// the problem once more, which may fail; the field, which is written by then, stays, and the report says why it has no
// results.
type figures struct {
	*Outputs
	tally *results.Tally
	near  *accuracy.Tally // nil in a stage, which states no accuracy
	rows  *results.Rows
	sums  []problem.Residual // of the rows of the stripe, of a weighted operator
	lever *multigrid.Lever   // nil where nothing tells how far rounding moves the field
	shown bool               // changes show that
	loads [][]float64        // of the rows of the stripe, by columns of cells
	fault error              // why this rank has no part in them
}

// figuresPart is what one rank contributes.
type figuresPart struct {
	Fault   string       `json:"fault,omitempty"`
	Results results.Part `json:"results"`
	nearness
	Residual *residuals    `json:"residual,omitempty"` // of a weighted operator
	Loads    []results.Sum `json:"loads,omitempty"`    // by cells of the Lever
}

// found is what all ranks have found. On other ranks than rank 0 it is empty.
type found struct {
	results  *results.Results
	nearness *nearness
	residual *output.ResidualReport // of a weighted operator
	off      float64                // see residual
	moved    *float64               // what rounding has, see multigrid.Lever; nil where it is unknown
	shown    bool                   // changes show that
	fault    string                 // why there are none
}

// newFigures returns nil if no results are wanted.
func (o *Outputs) newFigures() *figures {
	if !o.Config.Output.Results {
		return nil
	}
	f := &figures{Outputs: o, tally: results.New(o.Problem, o.Layout.Stripe)}
	if o.Stage {
		f.rows = results.NewRows(o.Problem, o.Layout.Stripe, f.tally)
		return f
	}
	f.near = accuracy.New(o.Problem, o.Layout.Stripe, o.Correction == nil && !o.Problem.Weighted())
	if o.Problem.Weighted() {
		f.sums = make([]problem.Residual, o.Layout.Stripe.Rows())
		if o.Rounding != nil {
			f.lever, f.shown = o.Rounding()
		}
		f.loads = make([][]float64, len(f.sums))
		f.tally.Beside(f.beside)
	}
	f.rows = results.NewRows(o.Problem, o.Layout.Stripe, f.tally, f.near)
	return f
}

// add adds rows of the field, as an output.Use does.
func (f *figures) add(lo int, rows []byte) error {
	if f.fault == nil {
		f.fault = f.rows.AddRows(lo, rows)
	}
	return nil
}

// wait waits for what goes on besides; it is called before the problem is closed.
func (f *figures) wait() {
	if f != nil {
		f.rows.Wait()
	}
}

// finish merges what all ranks have found. An error is one of the way between them, or of the device.
func (f *figures) finish(ctx context.Context, s *source) (all found, err error) {
	if f == nil {
		return all, nil
	}
	defer f.Tracer.Phase(trace.PhaseResults, time.Now())
	if f.fault == nil {
		f.fault = f.rows.End(s.below)
	}
	own := figuresPart{Results: f.tally.Part()}
	if f.near != nil {
		own.Part = f.near.Part()
		if f.Correction != nil {
			if own.Changes, err = f.Correction(ctx); err != nil {
				return all, err
			}
		}
		if f.Problem.Weighted() && f.fault == nil {
			own.Residual, f.fault = f.residuals(ctx, s)
			own.Loads = f.allLoads()
		}
	}
	if f.fault != nil {
		own = figuresPart{Fault: f.fault.Error()}
	}
	parts, err := roster.GatherOn(ctx, f.Comm, "figures", own)
	if err != nil || parts == nil {
		return all, err
	}
	return f.merge(parts, func(rank int) string { return f.Comm.Member(rank).Host }), nil
}

// merge merges the parts of all ranks, which are on hosts.
func (f *figures) merge(parts []figuresPart, host func(rank int) string) (all found) {
	var tallies []results.Part
	var nears []accuracy.Part
	var total *residuals
	var loads []results.Sum
	all.nearness = &nearness{}
	for rank, p := range parts {
		if p.Fault != "" {
			return found{fault: fmt.Sprintf("rank %d on %s: %s", rank, host(rank), p.Fault)}
		}
		tallies, nears = append(tallies, p.Results), append(nears, p.Part)
		all.nearness.Changes = all.nearness.Changes.Merge(p.Changes)
		total = total.merge(p.Residual)
		if loads == nil {
			loads = p.Loads
			continue
		}
		for i := range p.Loads {
			loads[i].Merge(&p.Loads[i])
		}
	}
	merged, err := results.Merge(f.Problem, tallies)
	if err != nil {
		return found{fault: err.Error()}
	}
	all.results, all.nearness.Part = &merged, accuracy.Merge(nears)
	if total != nil {
		all.residual, all.off = total.report()
	}
	if all.shown = f.shown; f.lever != nil {
		values := make([]float64, len(loads))
		for i := range loads {
			values[i] = loads[i].Value()
		}
		all.moved = new(f.lever.Move(values))
	}
	return all
}

// warnOfFloat32 warns where float32, in the files of the field, keeps few digits of its values, or none.
func (o *Outputs) warnOfFloat32(r *results.Results) {
	if c := o.Config.Output; r == nil || !c.Float32 || c.Field == "" {
		return
	}
	const least = 0x1p-126 // with all digits
	if largest := max(-r.Min.Value, r.Max.Value); largest > 0 && largest < least {
		o.Log.Sugar().Warnf("%s: the largest value of the field is %.3g, and float32 loses digits below %.3g: "+
			"set grid.dtype=float64 and output.float32=false", o.Config.Output.Field, largest, least)
	}
}

// residuals are sums over the rows of a rank: see problem.Residual.
type residuals struct {
	Squares results.Sum `json:"squares"`
	Right   results.Sum `json:"right"`
	Sum     results.Sum `json:"sum"`
	Hold    results.Sum `json:"hold"`
}

// beside works out the residual of the row above row iy, if the tally has all rows that this needs.
func (f *figures) beside(iy int, above [2][]float64, row []float64) (err error) {
	if stripe := f.Layout.Stripe; iy-2 >= stripe.Lo && iy < stripe.Hi {
		err = f.work(iy-1, above[0], above[1], row)
	}
	return err
}

// work works out the residual of row iy, and what the row adds to the loads of cells.
func (f *figures) work(iy int, above, here, below []float64) (err error) {
	i := iy - f.Layout.Stripe.Lo
	if f.sums[i], err = f.Problem.Residual(iy, above, here, below); err != nil || f.lever == nil {
		return err
	}
	columns := f.lever.Columns()
	f.loads[i] = make([]float64, columns[len(columns)-1]+1)
	return f.Problem.AddRounding(iy, above, here, below, columns, f.loads[i])
}

// allLoads adds the loads of all rows of the stripe, in their cells; nil without a Lever.
func (f *figures) allLoads() (all []results.Sum) {
	if f.lever == nil {
		return nil
	}
	all = make([]results.Sum, f.lever.Cell(f.Layout.Mesh.NY))
	for i, row := range f.loads {
		cell := f.lever.Cell(f.Layout.Stripe.Lo + i)
		for k, load := range row {
			all[cell+k].Add(load)
		}
	}
	return all
}

// residuals adds those of all rows of the stripe. The first and the last one have neighbours of other ranks, or none.
func (f *figures) residuals(ctx context.Context, s *source) (*residuals, error) {
	stripe := f.Layout.Stripe
	for _, iy := range []int{stripe.Lo, stripe.Hi - 1} {
		rows, err := s.field(ctx, iy-1, iy+2)
		if err != nil {
			return nil, err
		}
		if err = f.work(iy, rows[0], rows[1], rows[2]); err != nil {
			return nil, fmt.Errorf("residual: %w", err)
		}
	}
	total := new(residuals)
	for _, sum := range f.sums {
		total.Squares.Add(sum.Squares)
		total.Right.Add(sum.Right)
		total.Sum.Add(sum.Sum)
		total.Hold.Add(sum.Hold)
	}
	return total, nil
}

// merge adds the sums of another rank; nil stands for none.
func (r *residuals) merge(o *residuals) *residuals {
	if r == nil || o == nil {
		return o
	}
	r.Squares.Merge(&o.Squares)
	r.Right.Merge(&o.Right)
	r.Sum.Merge(&o.Sum)
	r.Hold.Merge(&o.Hold)
	return r
}

// report returns the residual of a weighted operator, and by how much all values together are off: with that added, the
// residuals would add up to 0. The norm does not tell either, as the diagonal of the equations differs between points.
func (r *residuals) report() (rep *output.ResidualReport, off float64) {
	if hold := r.Hold.Value(); hold > 0 {
		off = math.Abs(r.Sum.Value()) / hold
	}
	return output.NewResidual(math.Sqrt(r.Squares.Value()), math.Sqrt(r.Right.Value()), 1), off
}

// nearness is what one rank knows about the error of the field.
type nearness struct {
	accuracy.Part
	accuracy.Changes
}

// accuracy states the error of the field from what all ranks know of it, or says why it is unknown.
func (o *Outputs) accuracy(f found, result solver.Result) *output.AccuracyReport {
	n := f.nearness
	switch {
	case o.Stage:
		return nil
	case f.fault != "":
		return &output.AccuracyReport{Why: "there are no results"}
	case n == nil:
		return &output.AccuracyReport{Why: "output.results is false"}
	case math.IsNaN(result.Norm):
		return &output.AccuracyReport{Why: "no sweep has a norm"}
	case result.Norm == 0 && result.Reason == solver.Stagnated:
		return &output.AccuracyReport{Why: "updates so small count as 0 in the norm"}
	}
	a := accuracy.Run{Mesh: o.Layout.Mesh, Operator: o.Layout.Operator, Norm: result.Norm, Largest: n.Largest}
	if o.Correction == nil {
		a.Later = result.Iterations - o.lastNormed(result)
	}
	if a.Operator.Weighted {
		a.Open = o.Comm.Whole().Open
		return o.weighted(a, n.Changes, f, result)
	}
	correction := accuracy.OfCycle * n.Next
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

// weighted states the error of the field of a weighted operator. After cycles the estimate follows from their largest
// changes, and from what all values together are off and rounding has moved, which no change shows where rounding has
// made it; otherwise there is none.
func (o *Outputs) weighted(a accuracy.Run, c accuracy.Changes, f found,
	result solver.Result) *output.AccuracyReport {
	rep := &output.AccuracyReport{Rounding: a.Norm <= a.Floor()}
	// hidden is whether rounding may hide errors of up to rounded. Aggregates leave those above the floor, too.
	about, rounded, hidden := c.Error(o.fall), a.Rounded(), rep.Rounding
	switch {
	case f.moved != nil:
		about += max(f.off, accuracy.OfMoved**f.moved)
		hidden = hidden && math.IsInf(about, 1)
	case f.shown:
		about += f.off
		rounded, hidden = a.ByDifferences(), hidden || !math.IsInf(a.ByDifferences(), 1)
	default:
		about += f.off
	}
	if c.Last == 0 { // after plain cycles the norm stands for errors that only the finest mesh has
		about = a.About(about)
	}
	unknown := math.IsInf(about, 1)
	switch {
	case o.Correction == nil:
		rep.Why = "points have coefficients of their own"
	case result.Iterations == 0:
		rep.Why = "no cycle was done"
	case hidden && math.IsInf(rounded, 1):
		rep.Why = "only rounding is left of the norm"
	case hidden && (unknown || rounded > about):
		rep.Error, rep.ByRounding = &rounded, true
	case unknown:
		rep.Why = "the cycles have not reduced the norm"
	default:
		rep.Error, rep.Uncertain = &about, a.Operator.Contrast > accuracy.Sure
	}
	return rep
}
