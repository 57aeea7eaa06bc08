package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"jacobi/configs"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// Result says in one line how the run ended.
func Result(r Report) string {
	text := result(r) + "; norm " + norm(r)
	if remedy := r.Remedy(); remedy != "" {
		text += ". " + remedy
	}
	return text
}

func norm(r Report) string {
	switch {
	case r.Norm == nil && r.Sweeps > 0:
		return fmt.Sprintf("none, the first was due after %d sweeps (solver.norm_every)", r.NormEvery)
	case r.Norm == nil:
		return "none, no sweep was done"
	case r.NormEvery > 1 && r.NormSweep != nil:
		return fmt.Sprintf("%.10g after sweep %d, the last that has one (solver.norm_every %d, %s)", *r.Norm,
			*r.NormSweep, r.NormEvery, tolerances(r))
	}
	if r.method().Delay == 0 { // the norm is that of the field
		return fmt.Sprintf("%.10g after %s (%s)", *r.Norm, plural(r.Sweeps, r.step()), tolerances(r))
	}
	return fmt.Sprintf("%.10g after sweep %d (%s)", *r.Norm, r.Sweeps-1, tolerances(r))
}

// String says what the residual is.
func (r ResidualReport) String() string {
	if r.Relative == nil {
		return fmt.Sprintf("|b - Au| = %.4g, as in PETSc and hypre", r.Norm)
	}
	return fmt.Sprintf("|b - Au|/|b| = %.4g, as in PETSc and hypre", *r.Relative)
}

// tolerances names the tolerances in force.
func tolerances(r Report) string {
	switch {
	case r.RelativeTolerance == 0:
		return fmt.Sprintf("tolerance %g", r.Tolerance)
	case r.Tolerance == 0:
		return fmt.Sprintf("relative tolerance %g", r.RelativeTolerance)
	}
	return fmt.Sprintf("tolerance %g, relative %g", r.Tolerance, r.RelativeTolerance)
}

// withoutTolerance reports whether the run had no tolerance to meet.
func (r Report) withoutTolerance() bool { return r.Tolerance == 0 && r.RelativeTolerance == 0 }

// exact is the result of a run whose first norm is 0.
const exact = "exact: the field solves the equations at every point as it is"

func result(r Report) string {
	if r.method().Floor && r.Decisive != nil {
		switch {
		case r.StopReason == solver.Converged && r.Decisive.Norm == 0 && r.Sweeps == 0:
			return exact
		case r.StopReason == solver.Converged:
			return "converged: the norm met the tolerance"
		case r.StopReason == solver.Stagnated && r.Decisive.Norm == 0:
			return "perhaps not converged: updates so small count as 0 beside values of this size"
		case r.StopReason == solver.Stagnated:
			return "not converged: the norm no longer falls, far above what rounding leaves"
		}
		if r.Verdict == configs.Met {
			return "converged to the floor of rounding, which is above the default tolerance"
		}
		return "stalled: only rounding is left; the tolerance was not met"
	}
	switch d := r.Decisive; r.StopReason {
	case solver.Converged:
		if d.Sweep == 0 && d.Norm == 0 {
			return exact
		}
		text := fmt.Sprintf("converged: the norm of sweep %d, %.10g, met the tolerance", d.Sweep, d.Norm)
		if a := r.Accuracy; a != nil && a.Rounding {
			text += fmt.Sprintf("; rounding in %s alone leaves such a norm", r.Mesh.DType)
		}
		return text
	case solver.Stalled:
		if d.Norm == 0 {
			return fmt.Sprintf("stalled: by sweep %d no change was left that a norm shows (%s)", d.Sweep, r.Mesh.DType)
		}
		return fmt.Sprintf("stalled: by sweep %d only rounding (%s) moved the field, back and forth; "+
			"the tolerance was not met", d.Sweep, r.Mesh.DType)
	case solver.MaxIterations:
		if r.withoutTolerance() {
			return "done: " + plural(r.Sweeps, r.step()) + ", as asked"
		}
		return "not converged: stopped at max_iterations"
	case solver.Interrupted:
		return fmt.Sprintf("INTERRUPTED after %s: the files hold the field at that point", plural(r.Sweeps, r.step()))
	}
	return string(r.StopReason)
}

// far is the part of the range of the field above which an error counts as large.
const far = 0.1

// farOff reports whether the error is a large part of the range of the field.
func (r Report) farOff() bool {
	a := r.Accuracy
	return a != nil && a.Error != nil && r.Results != nil && *a.Error > far*(r.Results.Max.Value-r.Results.Min.Value)
}

// accuracy says how far the field is from the solution of the problem, the larger part first: what the mesh leaves, if
// that is known, and how far the field is from the solution of the discrete equations.
func accuracy(r Report) string {
	a := r.Accuracy
	if a.Mesh == nil || a.Mesh.Error == nil {
		text := solution(r, " from the solution of the discrete equations, at the worst point")
		if a.Error == nil {
			text = "unknown: " + a.Why
		}
		if a.Mesh != nil {
			text += "; the mesh's own error is not known: " + a.Mesh.Why
		}
		return text
	}
	mesh := fmt.Sprintf("about %.0e from the mesh (half of it differs by %.0e)", *a.Mesh.Error, a.Mesh.Differs)
	own := solution(r, " from the solution of its equations")
	if a.Error != nil && *a.Error > *a.Mesh.Error {
		return own + "; " + mesh
	}
	return mesh + "; " + own
}

// solution says how far the field is from what its equations give.
func solution(r Report, from string) string {
	a := r.Accuracy
	if a.Error == nil {
		return "unknown" + from + ": " + a.Why
	}
	text := fmt.Sprintf("about %.0e%s", *a.Error, from)
	switch {
	case *a.Error == 0:
		return "none: another sweep would change nothing"
	case a.ByRounding:
		return fmt.Sprintf("up to %s: rounding in %s leaves that", text, r.Mesh.DType)
	case a.Rounding, r.method().Floor && r.StopReason == solver.Stalled:
		text += fmt.Sprintf("; rounding in %s leaves that", r.Mesh.DType)
	case r.farOff():
		text += ": still far"
	case a.Uncertain:
		text += ", and perhaps far more, as the contrast of coefficients is large"
	}
	return text
}

// Remedy says what to change in a run that missed its tolerance, in one line; "" for other runs.
func (r Report) Remedy() string {
	if r.Verdict != configs.Missed {
		return ""
	}
	if r.Norm != nil && *r.Norm == 0 { // nor does a norm of 0 meet a tolerance below what it may have lost
		return "The tolerance was not met: set a larger one, or take a problem.initial that is nearer to the " +
			"solution, as norms below it count as 0 beside values of this size."
	}
	var ways []string
	if r.StopReason == solver.MaxIterations && !r.beyondType() {
		ways = append(ways, fmt.Sprintf("raise solver.max_iterations above %d", r.MaxIterations))
	}
	switch wide := solver.Float64.String(); {
	case r.beyondType() && r.Mesh.DType == wide:
	case r.instead() != nil && r.StopReason == solver.MaxIterations:
		better := r.instead()
		way := fmt.Sprintf("solver.method=%s, which takes a few %ss", better.Name, better.Unit)
		if r.Mesh.DType != wide && !better.Float32 {
			way = fmt.Sprintf("grid.dtype=%s and %s", wide, way)
		}
		ways = append(ways, "set "+way)
	case r.Mesh.DType != wide:
		ways = append(ways, "set grid.dtype="+wide)
	}
	switch {
	case r.StopReason == solver.Stagnated:
		ways = append(ways, "take a finer mesh, on which channels and gaps are several points wide, or a smaller "+
			"contrast of coefficients")
	case r.Norm != nil && !r.farOff():
		ways = append(ways, "set solver.tolerance="+roundUp(*r.Norm)+", which this run met")
	}
	last := len(ways) - 1
	if last < 0 {
		return "The tolerance was not met: set a larger one."
	}
	text := ways[last]
	if last > 0 {
		text = strings.Join(ways[:last], "; ") + "; or " + text
	}
	return "The tolerance was not met: " + text + "."
}

// instead returns a method that takes far less time and can solve the problem; nil if there is none.
func (r Report) instead() *methods.Method {
	better, ok := methods.Find(r.method().Instead)
	if !ok {
		return nil
	}
	return &better
}

// beyondType reports whether little more than rounding is left of the norm, which is above the tolerance.
func (r Report) beyondType() bool { return r.Accuracy != nil && r.Accuracy.Rounding }

// roundUp formats v > 0 with two digits, rounded up.
func roundUp(v float64) string {
	text := strconv.FormatFloat(v, 'e', 1, 64)
	if near, err := strconv.ParseFloat(text, 64); err == nil && near < v {
		unit := math.Pow(10, math.Floor(math.Log10(v))-1)
		text = strconv.FormatFloat(near+unit, 'e', 1, 64)
	}
	short, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(short, 'g', -1, 64)
}
