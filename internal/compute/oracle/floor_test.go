package oracle_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// A weakly screened problem without a tolerance ends well at the floor of rounding: its norm is what rounding leaves,
// and its field as near to the solution of the equations as the run says. A tolerance that the user has named is missed
// with the same field.
func TestFloorOfRounding(t *testing.T) {
	const n = 65
	keys := []string{"problem.source=x*y", "problem.screening=1e-5", "grid.nx=65", "grid.ny=65"}
	for _, side := range []string{"left", "right", "top", "bottom"} {
		keys = append(keys, "problem."+side+"=neumann(0)")
	}
	byDefault, err := run(t, 1, keys...)
	if err != nil {
		t.Fatal(err)
	}
	named, err := run(t, 1, append(keys, "solver.relative_tolerance=1e-8")...)
	if err != nil {
		t.Fatal(err)
	}
	if byDefault.StopReason != solver.Stalled || named.StopReason != solver.Stalled ||
		byDefault.Verdict != configs.Met || named.Verdict != configs.Missed ||
		byDefault.FieldHash != named.FieldHash {
		t.Fatalf("%s, %s; with the tolerance named %s, %s", byDefault.words(), byDefault.Verdict, named.words(),
			named.Verdict)
	}
	squares := 0.0
	for _, v := range byDefault.field {
		squares += v * v
	}
	if floor := 16 * 0x1p-53 * math.Sqrt(squares); *byDefault.Norm > floor || *byDefault.Norm <= 1e-8*byDefault.Base {
		t.Errorf("norm %g, base %g, floor %g", *byDefault.Norm, byDefault.Base, floor)
	}

	within(t, byDefault, n, 1e-5, func(x, y float64) float64 { return x * y })
}

// Where a norm at the floor of rounding, or of 0, hides the error that rounding has left, the run names what rounding
// may leave ("up to about"). What it has left depends on the last bits: at most 3 times as much and at least a tenth,
// but for one run, which ends 25 times as near.
func TestErrorBehindTheFloor(t *testing.T) {
	hidden, near := 0, []string{}
	for _, n := range []int{17, 65} {
		for _, screening := range []float64{1e-6, 1e-5} {
			for source, f := range map[string]func(x, y float64) float64{
				"1+sin(2*pi*x)": func(x, _ float64) float64 { return 1 + math.Sin(2*math.Pi*x) },
				"x":             func(x, _ float64) float64 { return x },
				"x*y":           func(x, y float64) float64 { return x * y },
				"1+x*y":         func(x, y float64) float64 { return 1 + x*y },
				"y*y":           func(_, y float64) float64 { return y * y },
			} {
				keys := []string{"problem.source=" + source, fmt.Sprintf("problem.screening=%g", screening),
					fmt.Sprintf("grid.nx=%d", n), fmt.Sprintf("grid.ny=%d", n)}
				for _, side := range []string{"left", "right", "top", "bottom"} {
					keys = append(keys, "problem."+side+"=neumann(0)")
				}
				got, err := run(t, 1, keys...)
				if err != nil {
					t.Fatal(err)
				}
				if !got.Accuracy.ByRounding {
					continue
				}
				hidden++
				worst, about := off(t, got, n, screening, f), *got.Accuracy.Error
				name := fmt.Sprintf("%d x %d points, f = %s, screening %g", n, n, source, screening)
				if worst > 3*about || worst == 0 || !got.Accuracy.Rounding {
					t.Errorf("%s: error %g, norm %g, %+v", name, worst, *got.Norm, got.Accuracy)
				}
				if about > 10*worst {
					near = append(near, name)
				}
			}
		}
	}
	want := []string{"65 x 65 points, f = 1+sin(2*pi*x), screening 1e-06"}
	if hidden != 11 || !slices.Equal(near, want) {
		t.Errorf("%d norms hide the error, want 11; the error is less than a tenth in %q, want %q", hidden, near, want)
	}
}

// within compares what a run says of its error with the error of its field: at most 3 times the estimate and at least a
// tenth of it.
func within(t *testing.T, got outcome, n int, screening float64, source func(x, y float64) float64) {
	t.Helper()
	worst := off(t, got, n, screening, source)
	if a := got.Accuracy; worst > 3**a.Error || *a.Error > 10*worst || worst == 0 {
		t.Errorf("error %g, about %g", worst, *a.Error)
	}
}

// off returns the error of a field of n x n points between insulated walls, at the worst point.
func off(t *testing.T, got outcome, n int, screening float64, source func(x, y float64) float64) (worst float64) {
	t.Helper()
	p := oracle.Problem{Width: 1, Height: 1, Screening: screening, Initial: make([]float64, n*n),
		Mesh: solver.Mesh{NX: n, NY: n, DType: solver.Float64, Walls: solver.Walls{Left: solver.Neumann,
			Right: solver.Neumann, Top: solver.Neumann, Bottom: solver.Neumann}}}
	for at := range n * n {
		p.Source = append(p.Source, source(float64(at%n)/float64(n-1), float64(at/n)/float64(n-1)))
	}
	u, err := oracle.NewEquations(p).Solve()
	if err != nil {
		t.Fatal(err)
	}
	for at, v := range u {
		worst = max(worst, math.Abs(v-got.field[at]))
	}
	return worst
}
