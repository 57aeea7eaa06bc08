package outlook

import (
	"context"
	"math"

	"jacobi/solver"
)

// Outlook is what a run will come to.
type Outlook struct {
	mesh  solver.Mesh
	modes []mode
	slow  float64 // least lambda of the modes that the initial error has
	early float64 // sweeps before this one have norms with much of modes that are not known
}

const (
	faint    = 1e-9 // of the largest part of the error: below it a part is the rounding of samples
	peak     = 2    // the largest value of a mode over its root mean square
	rounding = 0.6  // of half a unit in the last place of the solution: what rounding keeps from its point in a sweep
	lull     = 4    // norms fall by about so much below the attainable one before the field stalls
	endless  = 1e15 // sweeps that nobody will do
)

// New looks at samples of the field.
func New(ctx context.Context, f Field) (*Outlook, error) {
	modes, err := modesOf(ctx, f)
	if err != nil {
		return nil, err
	}
	o := &Outlook{mesh: f.Mesh(), slow: 2}
	if m := o.mesh; max(m.NX, m.NY) > waves+3 {
		o.early = 2 / (1 - math.Cos((waves+1)*math.Pi/float64(max(m.NX, m.NY)-1)))
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

// points returns the points of the interior.
func (o *Outlook) points() float64 { return float64(o.mesh.NX-2) * float64(o.mesh.NY-2) }

// after returns, but for rounding, the root mean squares of the error and of the update of sweep k, both over the k-th
// power of 1-slow, which may be too small for a float64.
func (o *Outlook) after(k float64) (fault, update float64) {
	for _, m := range o.modes {
		if m.start == 0 {
			continue
		}
		e := m.start * m.start * m.square * math.Exp(2*k*(math.Log1p(-m.slowness())-math.Log1p(-o.slow)))
		fault, update = fault+e, update+e*m.lambda*m.lambda
	}
	return math.Sqrt(fault), math.Sqrt(update)
}

// norm returns the norm of sweep k, but for rounding.
func (o *Outlook) norm(k float64) float64 {
	_, update := o.after(k)
	return update * math.Sqrt(o.points()) * math.Exp(k*math.Log1p(-o.slow))
}

// sweepsTo returns the first sweep whose norm is at most norm, but for rounding; endless if none is. It is too low
// where it is below early.
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

// Accuracy is what a type of field can attain: below Norm, the norm of an update tells no more of the error.
type Accuracy struct {
	Norm  float64 `json:"norm"`
	Error float64 `json:"error"` // of the solution, at the worst point
}

// Attainable returns the accuracy of a type. A field stalls where the updates are below half a unit in the last place
// of its values; in each mode that leaves an error of 1/lambda times as much.
func (o *Outlook) Attainable(d solver.DType) Accuracy {
	unit := 0x1p-24
	if d == solver.Float64 {
		unit = 0x1p-53
	}
	var squares, updates float64
	for _, m := range o.modes {
		e := rounding * unit / 2 * m.solution / m.lambda
		squares += e * e * m.square
		updates += e * e * m.square * m.lambda
	}
	if squares == 0 {
		return Accuracy{}
	}
	rms := math.Sqrt(squares)
	return Accuracy{Norm: updates / squares * rms * math.Sqrt(o.points()), Error: peak * rms}
}

// Error returns the error, at the worst point, of a field after so many sweeps, the last with that norm.
func (o *Outlook) Error(sweeps int, norm float64) float64 {
	least := o.Attainable(o.mesh.DType).Error
	fault, update := o.after(float64(max(0, sweeps-1)))
	if update == 0 {
		return least
	}
	return max(least, min(peak*norm/math.Sqrt(o.points())*fault/update, o.Largest()))
}

// Largest returns about the largest error of the initial field.
func (o *Outlook) Largest() float64 {
	fault := 0.0
	for _, m := range o.modes {
		fault += m.start * m.start * m.square
	}
	return peak * math.Sqrt(fault)
}

// End is how a run will end.
type End struct {
	Sweeps float64
	Reason solver.StopReason
	Error  float64
}

// End returns how a run with this tolerance will end; false where that is not known.
func (o *Outlook) End(tolerance float64, maxIterations int) (End, bool) {
	target, reason := o.target(tolerance)
	end := End{Sweeps: o.sweepsTo(target) + 2, Reason: reason}
	if end.Sweeps < o.early {
		return end, false
	}
	if end.Sweeps > float64(maxIterations) {
		end.Sweeps, end.Reason = float64(maxIterations), solver.MaxIterations
	}
	end.Error = o.Error(int(end.Sweeps), o.norm(end.Sweeps-1))
	return end, true
}

// target returns the norm at which a run ends, and why it does.
func (o *Outlook) target(tolerance float64) (float64, solver.StopReason) {
	if least := o.Attainable(o.mesh.DType).Norm / lull; least > tolerance {
		return least, solver.Stalled
	}
	return tolerance, solver.Converged
}
