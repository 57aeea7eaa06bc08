// Package outlook forecasts how a run will end, before the run and while it goes on. It samples the initial field, its
// boundary and the source, and computes the error of the initial field in each of the slowest modes of the iteration.
// For a mesh with fixed points inside or with weights of points, whose modes have no formula, it has no forecast of
// sweeps. docs/numerics.md
// compares forecasts with runs.
package outlook

import (
	"context"
	"math"

	"jacobi/solver"
)

// Outlook estimates how a run will end.
type Outlook struct {
	mesh  solver.Mesh
	known bool // there are estimates
	modes []mode
	count float64 // points that a sweep updates
	swept float64 // see rounding
	slow  float64 // least slowness of the modes that the initial error has
	early float64 // before this sweep, modes that were not computed contribute much to the norm
}

const (
	// The update that rounding swallows in a sweep, in half units in the last place of the solution: of the plain
	// average, and of the general update, which rounds more often.
	rounding        = 0.6
	generalRounding = 1.1

	faint   = 1e-9 // components below this fraction of the largest are rounding of the samples, taken as 0
	peak    = 2    // largest value of a mode over its root mean square
	lull    = 4    // the field stalls once the norm is about the attainable one divided by this
	endless = 1e15 // more sweeps than any run does
)

// New samples f and computes its outlook.
func New(ctx context.Context, f Field) (*Outlook, error) {
	x, y := axes(f.Mesh(), f.Operator())
	o := &Outlook{mesh: f.Mesh(), known: f.Operator().Fixed == nil && !f.Operator().Weighted, slow: 2,
		count: float64(x.points()) * float64(y.points()), early: max(x.early(), y.early()), swept: rounding}
	if !f.Operator().Plain() {
		o.swept = generalRounding
	}
	if !o.known {
		return o, nil
	}
	modes, err := modesOf(ctx, f)
	if err != nil {
		return nil, err
	}
	largest := 0.0
	for _, m := range modes {
		largest = max(largest, math.Abs(m.start))
	}
	for _, m := range modes {
		if math.Abs(m.start) <= faint*largest {
			m.start = 0
		} else {
			o.slow = min(o.slow, m.slowness())
		}
		o.modes = append(o.modes, m)
	}
	return o, nil
}

// Known reports whether there are estimates.
func (o *Outlook) Known() bool { return o.known }

// after returns the root mean square of the update of sweep k, apart from rounding, divided by the k-th power of
// 1-slow, which may be too small for a float64.
func (o *Outlook) after(k float64) float64 {
	update := 0.0
	for _, m := range o.modes {
		if m.start == 0 {
			continue
		}
		e := m.start * m.start * m.square * math.Exp(2*k*(decay(m.slowness())-decay(o.slow)))
		update += e * m.lambda * m.lambda
	}
	return math.Sqrt(update)
}

// decay returns the logarithm of what a sweep leaves of a mode. A sweep of a single point leaves nothing; a part in
// 2^53 stands for that.
func decay(slowness float64) float64 { return math.Log1p(-min(slowness, 1-0x1p-53)) }

// norm returns the norm of sweep k, apart from rounding.
func (o *Outlook) norm(k float64) float64 {
	return o.after(k) * math.Sqrt(o.count) * math.Exp(k*decay(o.slow))
}

// sweepsTo returns the first sweep whose norm is at most norm, apart from rounding; endless if there is none. A result
// below early is too low.
func (o *Outlook) sweepsTo(norm float64) float64 {
	high := 1.0
	for o.norm(high) > norm {
		if high *= 2; high > endless {
			return endless
		}
	}
	low := 0.0
	if o.norm(low) <= norm {
		return low
	}
	for high-low > 1 && high-low > 1e-6*high {
		if middle := (low + high) / 2; o.norm(middle) > norm {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// Attainable returns the norm that a type can attain; one below it says nothing more about the error. A field stalls
// where the updates are below half a unit in the last place of its values. In each mode this leaves an error of
// 1/lambda times such an update.
func (o *Outlook) Attainable(d solver.DType) float64 {
	unit := 0x1p-24
	if d == solver.Float64 {
		unit = 0x1p-53
	}
	var squares, updates float64
	for _, m := range o.modes {
		e := o.swept * unit / 2 * m.solution / m.lambda
		squares += e * e * m.square
		updates += e * e * m.square * m.lambda
	}
	if squares == 0 {
		return 0
	}
	return updates / math.Sqrt(squares) * math.Sqrt(o.count)
}

// Largest estimates the largest error of the initial field.
func (o *Outlook) Largest() float64 {
	fault := 0.0
	for _, m := range o.modes {
		fault += m.start * m.start * m.square
	}
	return peak * math.Sqrt(fault)
}

// End describes how a run will end.
type End struct {
	Sweeps float64
	Reason solver.StopReason
}

// End estimates how a run with this tolerance will end; false if that is unknown.
func (o *Outlook) End(tolerance float64, maxIterations int) (End, bool) {
	if !o.known {
		return End{}, false
	}
	target, reason := o.target(tolerance)
	end := End{Sweeps: o.sweepsTo(target) + 2, Reason: reason}
	if end.Sweeps < o.early {
		return end, false
	}
	if end.Sweeps > float64(maxIterations) {
		end.Sweeps, end.Reason = float64(maxIterations), solver.MaxIterations
	}
	return end, true
}

// target returns the norm at which a run ends, and the reason.
func (o *Outlook) target(tolerance float64) (float64, solver.StopReason) {
	if least := o.Attainable(o.mesh.DType) / lull; least > tolerance {
		return least, solver.Stalled
	}
	return tolerance, solver.Converged
}
