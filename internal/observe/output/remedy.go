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

// Remedy says what to change in a run that missed its tolerance, in one line; "" for other runs.
func (r Report) Remedy() string {
	if r.Verdict != configs.Missed {
		return ""
	}
	if r.Norm != nil && *r.Norm == 0 { // nor does a norm of 0 meet a tolerance below what it may have lost
		return "The tolerance was not met: set a larger one, as norms below it count as 0 beside values of this size."
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
	if r.StopReason == solver.Stagnated && !r.Accelerated {
		ways = append(ways, "try solver.acceleration=cg")
	}
	if r.Norm != nil {
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
