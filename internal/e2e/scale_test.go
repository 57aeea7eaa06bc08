package e2e

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
)

// data are the keys of a box at 0 with a source, walls and an electrode, all c times as large.
func data(c string) []string {
	return set("problem.preset=dirichlet", "solver.relative_tolerance=1e-8", "grid.nx=65", "grid.ny=49",
		"grid.dtype=float64", "output.picture=", "problem.source="+c+"*(1+x)", "problem.top="+c,
		"problem.left=neumann("+c+"*y)", "problem.fixed=ix == 20 and iy == 30",
		"problem.initial=ix == 20 and iy == 30 ? -"+c+" : 0")
}

// Data that are c times as large give a field that is c times as large, by both methods, on any number of ranks, and
// with the same verdict.
func TestScale(t *testing.T) {
	for _, keys := range [][]string{append(set("solver.method=multigrid"), "-np", "1"),
		append(set("solver.method=multigrid", "solver.start=full"), "-np", "2"),
		append(set("solver.method=jacobi", "solver.max_iterations=1000000"), "-np", "3")} {
		var want []float64
		for _, c := range []string{"1", "1e-30", "1e-6", "1e30"} {
			dir := t.TempDir()
			end := run(t, dir, "launcher", append(data(c), keys...)...)
			if r := readReport(t, filepath.Join(dir, "out")); end.code != 0 || r.StopReason != "converged" {
				t.Errorf("%v, %s: exit code %d, %s\n%s", keys, c, end.code, r.StopReason, end.stderr)
			}
			field := readField(t, filepath.Join(dir, "out", "field.npy"), 65, 49)
			if want == nil {
				want = field
			}
			scale, _ := strconv.ParseFloat(c, 64)
			for i, v := range field {
				if d := math.Abs(v/scale - want[i]); d > 1e-6 {
					t.Fatalf("%v, %s: point %d is %g, want %g times that", keys, c, i, v, want[i])
				}
			}
		}
	}
}

// poisson are the keys of a box with a source.
func poisson(keys ...string) []string {
	return set(append([]string{"problem.preset=dirichlet", "grid.dtype=float64", "solver.method=multigrid",
		"solver.relative_tolerance=1e-8", "grid.nx=65", "grid.ny=49", "problem.source=1"}, keys...)...)
}

// The tolerance does not depend on the initial field: neither does the base, which has the same bits for all ranks. A
// solution of 0 is exact.
func TestBaseOfTheTolerance(t *testing.T) {
	t.Parallel()
	zero, r := solve(t, append(poisson(), "-np", "1")...)
	base := r.Base
	for _, keys := range [][]string{set("problem.initial=5"), set("problem.initial=sin(ix)"),
		set("problem.initial=1e5", "solver.method=jacobi", "solver.max_iterations=1000000"),
		set("problem.initial=5", "solver.method=jacobi", "solver.norm_every=16", "halo.depth=3",
			"solver.max_iterations=1000000"), set("solver.start=full")} {
		var want answer
		first := 0.0
		for _, np := range []string{"1", "2", "3"} {
			args := append(poisson(), keys...)
			got, r := solve(t, append(args, "-np", np)...)
			if np == "1" {
				want, first = got, r.Base
			}
			if r.Base != first || math.Abs(r.Base/base-1) > 1e-14 || got != want || got.reason != "converged" ||
				r.Norm > 1e-8*base {
				t.Errorf("%v, -np %s: base %v, norm %v (%s), same answer: %v; want base %v", keys, np, r.Base, r.Norm,
					got.reason, got == want, base)
			}
		}
	}
	if zero.reason != "converged" || base == 0 {
		t.Errorf("%s, base %g", zero.reason, base)
	}
	for _, method := range []string{"multigrid", "jacobi"} {
		got, r := solve(t, append(poisson("problem.source=0", "problem.top=0", "problem.initial=1",
			"solver.method="+method), "-np", "2")...)
		if got.reason != "converged" || r.Norm != 0 || r.Results == nil || r.Results.Max.Value != 0 {
			t.Errorf("%s: %s, norm %v, %+v; want the field 0", method, got.reason, r.Norm, r.Results)
		}
	}
}

// Emulated GPUs find the same base and end as the CPU, from an initial field that is not 0 and with full multigrid.
func TestBaseOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	for _, keys := range [][]string{{"problem.initial=5"}, {"solver.start=full"}} {
		keys = append(keys, "problem.preset=dirichlet", "grid.dtype=float64", "solver.method=multigrid",
			"solver.relative_tolerance=1e-8", "grid.nx=130", "grid.ny=151", "problem.source=1")
		want, first := solve(t, append(set(append(keys, "device.backend=cpu")...), "-np", "1")...)
		for _, r := range sameOnGPUs(t, env, keys, want, []string{"1", "3"}) {
			if r.Base != first.Base || r.Base == 0 {
				t.Errorf("%v: base %v, want %v", keys, r.Base, first.Base)
			}
		}
	}
}
