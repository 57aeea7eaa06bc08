package e2e

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// everyProblems are problems for norms of some sweeps, with and without terms.
var everyProblems = map[string][]string{
	"plain":     {"grid.nx=97", "grid.ny=131"},
	"fixed":     {"grid.nx=130", "grid.ny=141", "problem.preset=dirichlet", "problem.fixed=hypot(x-0.4, y-0.5) < 0.2"},
	"source":    {"grid.nx=97", "grid.ny=131", "problem.preset=dirichlet", "problem.source=sin(9*x)*y"},
	"screening": {"grid.nx=70", "grid.ny=131", "problem.preset=dirichlet", "problem.left=y", "problem.screening=40"},
	"all terms": {"grid.nx=131", "grid.ny=139", "problem.preset=dirichlet", "problem.top=neumann(1)", "grid.width=2",
		"problem.source=1", "problem.screening=3", "problem.fixed=(ix + 3*iy) % 11 == 0"},
}

const everySweeps = 47 // most norms of every 7th sweep lie within passes of 5 sweeps

// everyCases are values of solver.norm_every, with depths.
var everyCases = []struct{ every, depth int }{{16, 16}, {7, 5}, {3, 1}}

// With norms of some sweeps, the field is that of a run with all norms, and the history has the lines of exactly those
// sweeps, whatever carries halos and norms. Each problem runs each cadence with two or three ranks, so that the
// problems together have every cadence with both numbers of ranks and both transports. That kernels compute the norms
// of any sweeps, and no others, in each type, is proven without processes (backendtest.NormCases). TCP is tested with
// hosts.
func TestNormsOfSomeSweeps(t *testing.T) {
	t.Parallel()
	for own, name := range slices.Sorted(maps.Keys(everyProblems)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := everyBase(append([]string{"grid.dtype=" + []string{"float32", "float64"}[own%2]},
				everyProblems[name]...))
			all := withAllNorms(t, base)
			for i, c := range everyCases {
				keys := with(base, "halo.transport="+[]string{"nats", "p2p"}[(own/2+i)%2],
					fmt.Sprint("halo.depth=", c.depth), fmt.Sprint("solver.norm_every=", c.every))
				for _, np := range []int{1, 2 + (own+i)%2} {
					got, _ := solve(t, onRanks(np, keys...)...)
					checkEvery(t, fmt.Sprintf("np %d, %v", np, keys), got, all, c.every)
				}
			}
		})
	}
}

// The same between two and three hosts, over TCP and over NATS, with and without terms.
func TestNormsOfSomeSweepsOverHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for i, name := range []string{"plain", "all terms"} {
		base := everyBase(everyProblems[name])
		all := withAllNorms(t, base)
		for j, e := range everyCases {
			hosts := []string{"a:1,b:1", "a:1,b:1,c:1"}[j%2]
			transport := []string{"direct", "nats"}[(i+j)%2]
			dir := t.TempDir()
			what := fmt.Sprintf("%s, hosts %s, %s, depth %d", name, hosts, transport, e.depth)
			out := c.run(dir, append(append(onRanks(strings.Count(hosts, ":"), with(base, "halo.transport="+transport,
				fmt.Sprint("halo.depth=", e.depth), fmt.Sprint("solver.norm_every=", e.every))...),
				c.ssh("user")...), "--host", hosts)...)
			if out.code != 0 {
				t.Fatalf("%s: exit code %d\n%s%s", what, out.code, out.stdout, out.stderr)
			}
			got, r := answerIn(t, filepath.Join(dir, "out"))
			checkEvery(t, what, got, all, e.every)
			for side, link := range r.Ranks[0].Transports {
				if link.Transport != transport {
					t.Errorf("%s: rank 0, %s: %s (%s)", what, side, link.Transport, link.Why)
				}
			}
		}
	}
}

// everyBase returns the settings of a run of everySweeps sweeps.
func everyBase(problem []string) []string {
	return slices.Clip(append([]string{"solver.tolerance=0", "output.picture=", "output.field=",
		fmt.Sprint("solver.max_iterations=", everySweeps)}, problem...))
}

// withAllNorms returns the answer of one rank with the norm of every sweep.
func withAllNorms(t *testing.T, base []string) answer {
	t.Helper()
	all, _ := solve(t, onRanks(1, base...)...)
	if n := strings.Count(all.history, "\n"); n != 1+everySweeps || all.sweeps != everySweeps {
		t.Fatalf("%d lines after %d sweeps, want a header and %d", n, all.sweeps, everySweeps)
	}
	return all
}

// checkEvery checks that got is the answer all, but with the norms of every n-th sweep alone.
func checkEvery(t *testing.T, what string, got, all answer, every int) {
	t.Helper()
	all.history = linesOf(all.history, every)
	if got != all {
		t.Errorf("%s, norm_every %d: %d sweeps (%s), field %s, history\n%swant %d (%s), %s,\n%s", what, every,
			got.sweeps, got.reason, got.sha, got.history, all.sweeps, all.reason, all.sha, all.history)
	}
}

// linesOf returns the header of a history of all sweeps and its lines of sweeps every-1, 2*every-1 and so on.
func linesOf(history string, every int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(history, "\n"), "\n")
	some := lines[0]
	for i := every; i < len(lines); i += every {
		some += strings.TrimSuffix(lines[i], "\n") + "\n"
	}
	return some
}

// A run with norms of some sweeps ends one sweep after the first of them that meets the tolerance.
func TestNormsOfSomeSweepsEndARun(t *testing.T) {
	t.Parallel()
	base := []string{"grid.nx=97", "grid.ny=131", "output.picture=", "output.field="}
	all, _ := solve(t, onRanks(1, with(base, "solver.tolerance=0", "solver.max_iterations=400")...)...)
	norms := normsOf(t, all.history)
	const every, tolerance = 16, 0.31
	k := every - 1
	for k+every < len(norms) && norms[k] > tolerance {
		k += every
	}
	if norms[k] > tolerance || k+2 >= len(norms) {
		t.Fatalf("norm %v of sweep %d: the problem does not fit", norms[k], k)
	}
	want, _ := solve(t, onRanks(1, with(base, "solver.tolerance=0",
		fmt.Sprintf("solver.max_iterations=%d", k+2))...)...)
	want.reason, want.history = "converged", linesOf(want.history, every)
	for _, w := range [][]string{{"halo.transport=nats", "halo.depth=1"}, {"halo.transport=p2p", "halo.depth=5"},
		{"halo.transport=nats", "halo.depth=16"}, {"halo.transport=p2p", "halo.depth=16"}} {
		got, _ := solve(t, onRanks(3, slices.Concat(base, w, []string{fmt.Sprint("solver.tolerance=", tolerance),
			"solver.max_iterations=400", fmt.Sprint("solver.norm_every=", every)})...)...)
		same(t, got, want, w)
	}
}

// The periodic problem in float32 ends in two alternating states above the tolerance. The run ends at the same sweep
// with the same field for any number of ranks, depth and transport, even if it resumes from a checkpoint among the
// norms that decide.
func TestStalledRunEnds(t *testing.T) {
	t.Parallel()
	problem := []string{"grid.nx=33", "grid.ny=40", "output.picture=", "solver.max_iterations=1000000"}
	want, r := solve(t, onRanks(1, with(problem, "device.kernel=portable", "halo.depth=1")...)...)
	d := r.Decisive
	if want.reason != "stalled" || want.sweeps != 1641 || d == nil || d.Sweep != 1639 || d.Norm <= 1e-8 {
		t.Fatalf("%s after %d sweeps, by %+v; want stalled after 1641, by 1639", want.reason, want.sweeps, d)
	}
	for _, args := range [][]string{onRanks(3, with(problem, "halo.depth=7")...),
		onRanks(2, with(problem, "halo.depth=5", "halo.transport=nats")...)} {
		got, _ := solve(t, args...)
		same(t, got, want, args)
	}
	dir := t.TempDir()
	keys := with(problem, "checkpoint.every=1600 sweeps", "checkpoint.dir=states")
	mustRun(t, dir, "launcher", onRanks(2, with(keys, "solver.max_iterations=1610")...)...)
	out := mustRun(t, dir, "launcher", append(onRanks(3, keys...), "--restart")...)
	got, r := answerIn(t, filepath.Join(dir, "out"))
	same(t, got, want, "restarted")
	const words = "stalled: by sweep 1639 only rounding (float32) moved the field, back and forth"
	if r.ResumedAfter <= 1540 || !strings.Contains(out.stdout, words) {
		t.Errorf("restarted after %d; summary\n%s\nwants %s", r.ResumedAfter, out.stdout, words)
	}
}

// The residual of the report is that of the five-point equations for the field of the file, as PETSc and hypre have it:
// b has the source and the values of the sides.
func TestResidualIsThatOfTheEquations(t *testing.T) {
	t.Parallel()
	const nx, ny, width, k2 = 33, 49, 2.0, 3.0
	const hx, hy = width / (nx - 1), width / (nx - 1) / 2
	dir := t.TempDir()
	out := runNatural(t, dir, "launcher", onRanks(2, "grid.nx=33", "grid.ny=49", "grid.width=2", "grid.height=1.5",
		"problem.source=5", "problem.preset=dirichlet", "problem.screening=3", "solver.relative_tolerance=1e-3")...)
	if out.code != 0 || !strings.Contains(out.stdout, "  Residual       |b - Au|/|b| = ") {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	u := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	at := func(u []float64, ix, iy int) float64 { return u[iy*nx+ix] }
	defect := func(u []float64) float64 {
		var sum float64
		for iy := 1; iy < ny-1; iy++ {
			for ix := 1; ix < nx-1; ix++ {
				c := at(u, ix, iy)
				r := 5 + (at(u, ix-1, iy)-2*c+at(u, ix+1, iy))/(hx*hx) +
					(at(u, ix, iy-1)-2*c+at(u, ix, iy+1))/(hy*hy) - k2*c
				sum += r * r
			}
		}
		return math.Sqrt(sum)
	}
	data := make([]float64, nx*ny) // 0 where sweeps update: its defect is b
	copy(data, u[:nx])
	norm := defect(u)
	r := readReport(t, filepath.Join(dir, "out")).Residual
	if r == nil || math.Abs(r.Norm/norm-1) > 1e-6 || math.Abs(r.Relative/(norm/defect(data))-1) > 1e-6 {
		t.Errorf("residual %+v, want %g and %g", r, norm, norm/defect(data))
	}
}

// Data that are c times as large give a field that is c times as large, by both methods, on any number of ranks, and
// with the same verdict.
func TestScale(t *testing.T) {
	for np, keys := range map[int][]string{1: {"solver.method=multigrid"},
		2: {"solver.method=multigrid"}, 3: {"solver.max_iterations=1000000"}} {
		var want []float64
		for _, c := range []string{"1", "1e-30", "1e30"} {
			dir := t.TempDir()
			mustRun(t, dir, "launcher", onRanks(np, with(keys, "problem.preset=dirichlet", "output.picture=",
				"solver.relative_tolerance=1e-8", "grid.nx=65", "grid.ny=49", "grid.dtype=float64",
				"problem.source="+c+"*(1+x)", "problem.top="+c, "problem.left=neumann("+c+"*y)",
				"problem.fixed=ix == 20 and iy == 30", "problem.initial=ix == 20 and iy == 30 ? -"+c+" : 0")...)...)
			if r := readReport(t, filepath.Join(dir, "out")); r.StopReason != "converged" {
				t.Errorf("%v, %s: %s", keys, c, r.StopReason)
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

// The tolerance does not depend on the initial field: neither does the base, which has the same bits for all ranks. A
// solution of 0 is exact.
func TestBaseOfTheTolerance(t *testing.T) {
	t.Parallel()
	poisson := []string{"problem.preset=dirichlet", "grid.dtype=float64", "solver.method=multigrid",
		"solver.relative_tolerance=1e-8", "grid.nx=65", "grid.ny=49", "problem.source=1"}
	_, zero := solve(t, onRanks(1, poisson...)...)
	for _, keys := range [][]string{{"problem.initial=5"}, {"problem.initial=sin(ix)"},
		{"problem.initial=1e5", "solver.method=jacobi", "solver.max_iterations=1000000", "solver.norm_every=16",
			"halo.depth=3"}} {
		want, first := solve(t, onRanks(1, with(poisson, keys...)...)...)
		got, r := solve(t, onRanks(3, with(poisson, keys...)...)...)
		same(t, got, want, keys)
		if r.Base != first.Base || !(math.Abs(r.Base/zero.Base-1) < 1e-14) || got.reason != "converged" ||
			r.Norm > 1e-8*zero.Base {
			t.Errorf("%v: base %v, norm %v (%s); want base %v", keys, r.Base, r.Norm, got.reason, zero.Base)
		}
	}
	for _, method := range []string{"multigrid", "jacobi"} {
		got, r := solve(t, onRanks(2, with(poisson, "problem.source=0", "problem.top=0", "problem.initial=1",
			"solver.method="+method)...)...)
		if got.reason != "converged" || r.Norm != 0 || r.Results == nil || r.Results.Max.Value != 0 {
			t.Errorf("%s: %s, norm %v, %+v; want the field 0", method, got.reason, r.Norm, r.Results)
		}
	}
}
