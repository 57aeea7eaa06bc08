package outlook

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"jacobi/solver"
)

// Warning warns of a tolerance that the type of the field cannot attain, and says which type attains it. Otherwise what
// and do are empty.
func (o *Outlook) Warning(tolerance, relative float64) (what, do string) {
	a, target := o.Attainable(o.mesh.DType), o.Target(tolerance, relative)
	if target == 0 || target >= a {
		return "", ""
	}
	key, value := o.deciding(tolerance, relative)
	what = fmt.Sprintf("%s %g is below what %s attains on this mesh: a norm of %s", key, value, o.mesh.DType, About(a))
	if better, ok := o.Better(target); ok {
		return what, fmt.Sprintf("grid.dtype=%s attains it", better)
	}
	return what, "no type attains it"
}

// Better returns the type that attains a tolerance which the field's own type does not attain.
func (o *Outlook) Better(tolerance float64) (solver.DType, bool) {
	wide := solver.Float64
	ok := o.mesh.DType != wide && tolerance > 0 && tolerance < o.Attainable(o.mesh.DType) &&
		tolerance >= o.Attainable(wide)
	return wide, ok
}

// NoEstimate says why there are no estimates for a mesh with fixed points inside, or with weights of points.
const NoEstimate = "no estimate of the sweeps, because points inside the mesh are fixed or have a coefficient each"

// Expected says how a run with this tolerance will end; "" without a tolerance, or if the end is unknown.
func (o *Outlook) Expected(tolerance float64, maxIterations int) string {
	if !o.known {
		return NoEstimate
	}
	end, ok := o.End(tolerance, maxIterations)
	if tolerance == 0 || !ok {
		return ""
	}
	switch end.Reason {
	case solver.Converged:
		return fmt.Sprintf("expected: the tolerance is met after about %s sweeps", count(end.Sweeps))
	case solver.Stalled:
		return fmt.Sprintf("expected: only rounding is left after about %s sweeps", count(end.Sweeps))
	default:
		text := fmt.Sprintf("expected: the end is at the %s sweeps of solver.max_iterations",
			humanize.Comma(int64(maxIterations)))
		if to := o.sweepsTo(tolerance); to < endless {
			text += fmt.Sprintf("; the tolerance takes about %s", count(to+2))
		}
		return text
	}
}

// About formats an estimate with one digit: "about 4e-04".
func About(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("about %.0e", v)
}

// count formats a number of sweeps: to two significant digits, or exactly if it has at most four digits.
func count(sweeps float64) string {
	if sweeps < 1e4 {
		return humanize.Comma(int64(sweeps))
	}
	unit := math.Pow(10, math.Floor(math.Log10(sweeps))-1)
	return humanize.Comma(int64(math.Round(sweeps/unit) * unit))
}
