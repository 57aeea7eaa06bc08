package e2e

import (
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sbinet/npyio"

	"jacobi/internal/base/ballast"
	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// readField reads the whole mesh of a run.
func readField(t *testing.T, path string, nx, ny int) (values []float64) {
	t.Helper()
	r, err := npyio.NewReader(strings.NewReader(readText(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	if shape := r.Header.Descr.Shape; len(shape) != 2 || shape[0] != ny || shape[1] != nx || r.Header.Descr.Fortran {
		t.Fatalf("field.npy: %v, want C order and shape (%d, %d)", r.Header.Descr, ny, nx)
	}
	if r.Header.Descr.Type == "<f4" {
		var narrow []float32
		err = r.Read(&narrow)
		for _, v := range narrow {
			values = append(values, float64(v))
		}
	} else {
		err = r.Read(&values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// With zero sides, sin(pi x) sin(pi y) is an eigenvector of the sweep. Each sweep multiplies field and norm by the
// eigenvalue (cos(pi/(nx-1)) + cos(pi/(ny-1))) / 2.
func TestEigenmodeDecaysByItsEigenvalue(t *testing.T) {
	t.Parallel()
	const nx, ny, sweeps = 65, 49, 200
	dir := t.TempDir()
	mustRun(t, dir, "launcher", onRanks(3, "grid.nx=65", "grid.ny=49", "grid.dtype=float64", "problem.preset=dirichlet",
		"problem.top=0", "problem.initial=sin(pi*x)*sin(pi*y)", "solver.max_iterations=200", "halo.depth=3",
		"solver.tolerance=0")...)
	eigenvalue := (math.Cos(math.Pi/(nx-1)) + math.Cos(math.Pi/(ny-1))) / 2
	norms := normsOf(t, readText(t, dir, "out", "history.csv"))
	if len(norms) != sweeps {
		t.Fatalf("%d norms, want %d", len(norms), sweeps)
	}
	// The update of sweep 0 is (1 - eigenvalue) times the mode, whose norm is sqrt((nx-1)(ny-1))/2.
	want := (1 - eigenvalue) * math.Sqrt((nx-1)*(ny-1)) / 2
	for k, norm := range norms {
		// In new-old, the rounding errors of values of order 1 remain in a difference of order 1-eigenvalue.
		if math.Abs(norm/want-1) > 1e-12 {
			t.Fatalf("sweep %d: norm %.17g, want %.17g", k, norm, want)
		}
		want *= eigenvalue
	}
	for i, got := range readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny) {
		ix, iy, want := i%nx, i/nx, 0.0
		if iy > 0 && iy < ny-1 && ix > 0 && ix < nx-1 {
			want = math.Pow(eigenvalue, sweeps) * math.Sin(math.Pi*float64(ix)/(nx-1)) *
				math.Sin(math.Pi*float64(iy)/(ny-1))
		}
		if math.Abs(got-want) > 1e-14 {
			t.Fatalf("row %d, column %d: %.17g, want %.17g", iy, ix, got, want)
		}
	}
}

// The hash in the report is that of the rows of field.npy. Periodic rows are copies, and sides have their values.
func TestOutputsAgreeWithEachOther(t *testing.T) {
	t.Parallel()
	const nx, ny = 90, 71
	dir := t.TempDir()
	mustRun(t, dir, "launcher", onRanks(3, "grid.nx=90", "grid.ny=71", "grid.dtype=float64",
		"solver.max_iterations=50")...)
	hash := fieldHashOf(t, filepath.Join(dir, "out", "field.npy"))
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldHash != hash {
		t.Errorf("report has hash %s, the file's rows %s", r.FieldHash, hash)
	}
	field := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	for ix := 1; ix < nx-1; ix++ {
		if field[ix] != field[(ny-2)*nx+ix] || field[(ny-1)*nx+ix] != field[nx+ix] {
			t.Fatalf("column %d: rows 0 and %d are not the copies of rows %d and 1", ix, ny-1, ny-2)
		}
	}
	for iy := range ny {
		want := elementary.Sin(2 * math.Pi * float64(iy) / (ny - 1))
		if field[iy*nx] != want || field[iy*nx+nx-1] != want {
			t.Fatalf("row %d: sides %v and %v, want %v", iy, field[iy*nx], field[iy*nx+nx-1], want)
		}
	}
	if img, err := png.Decode(strings.NewReader(readText(t, dir, "out", "field.png"))); err != nil ||
		img.Bounds().Dx() < 400 || img.Bounds().Dx() > 1900 {
		t.Errorf("field.png: %v, %v", img, err)
	}
}

// A rank needs memory for two stripes and halos and for little else. The report agrees with the operating system, which
// also counts the pages of the program's file that are in memory, and the garbage that the ballast allows.
func TestMemoryOfARank(t *testing.T) {
	const n = 16384
	_, r := solve(t, onRanks(2, "grid.nx=16384", "grid.ny=16384", "solver.max_iterations=2", "output.field=",
		"output.picture=")...)
	stripes, err := solver.Partition(solver.Stripe{Lo: 1, Hi: n - 1}, 2, r.Depth)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Stat(filepath.Join(bin, "jacobi-rank"))
	if err != nil {
		t.Fatal(err)
	}
	for i, rank := range r.Ranks {
		need := int64(2*(stripes[i].Rows()+2*r.Depth)) * n * 4
		most := need + need/25
		if rank.MemoryBytes < need || rank.MemoryBytes > most {
			t.Errorf("rank %d: the run counts %d bytes, want %d to %d", i, rank.MemoryBytes, need, most)
		}
		most += program.Size() + ballast.Size
		if rank.RSSBytes < need || rank.RSSBytes > most {
			t.Errorf("rank %d: the operating system counts %d bytes, want %d to %d", i, rank.RSSBytes, need, most)
		}
	}
}

// manufactured is a problem with a known solution, on meshes of twice the resolution.
type manufactured struct {
	name   string
	args   []string
	nx, ny [2]int
	// u is the solution at the point (ix, iy) of a mesh of nx x ny points.
	u func(ix, iy, nx, ny int) float64
}

// manufacturedProblems have every kind of wall, with equal and with unequal spacings.
func manufacturedProblems() []manufactured {
	// u = sin(2x) cos(3y) in the unit square: -(u_xx + u_yy) = 13 u.
	const u, f = "sin(2*x)*cos(3*y)", "13*sin(2*x)*cos(3*y)"
	inSquare := func(ix, iy, nx, ny int) float64 {
		return math.Sin(2*float64(ix)/float64(nx-1)) * math.Cos(3*float64(iy)/float64(ny-1))
	}
	given := func(text string) []string {
		return []string{"problem.left=" + text, "problem.right=" + text, "problem.top=" + text,
			"problem.bottom=" + text}
	}
	// A side has the derivative in the direction out of the square.
	derived := []string{"problem.left=neumann(-2*cos(3*y))", "problem.right=neumann(2*cos(2)*cos(3*y))",
		"problem.top=neumann(0)", "problem.bottom=neumann(-3*sin(2*x)*sin(3))"}
	// u = sin(X) cos(3y) where X goes once around in nx-2 columns, 2 pi wide: -(u_xx + u_yy) = 10 u.
	const around = "sin(2*pi*x)*cos(3*y)"
	inRing := func(ix, iy, nx, ny int) float64 {
		return math.Sin(2*math.Pi*float64(ix)/float64(nx-2)) * math.Cos(3*float64(iy)/float64(ny-1))
	}
	ring := []string{"problem.left=periodic", "problem.right=periodic", "problem.source=10*" + around,
		"grid.width=6.283185307179586", "grid.height=1"}
	// Here both directions are periodic, and k2 = 2 makes the solution unique: -(u_xx + u_yy) + 2 u = 7 u.
	torus := []string{"problem.left=periodic", "problem.right=periodic", "problem.top=periodic",
		"problem.bottom=periodic", "problem.source=7*sin(2*pi*x)*cos(4*pi*y)", "problem.screening=2",
		"grid.width=6.283185307179586", "grid.height=6.283185307179586"}
	inTorus := func(ix, iy, nx, ny int) float64 {
		return math.Sin(2*math.Pi*float64(ix)/float64(nx-2)) * math.Cos(4*math.Pi*float64(iy)/float64(ny-2))
	}
	square := []string{"grid.width=1", "grid.height=1", "problem.source=" + f}
	screened := []string{"grid.width=1", "grid.height=1", "problem.source=18*" + u, "problem.screening=5"}
	mixed := append([]string{"problem.top=" + u, "problem.left=" + u}, derived[1], derived[3])
	equal, unequal := [2]int{17, 33}, [2]int{25, 49}
	return []manufactured{
		{"values", append(given(u), square...), equal, equal, inSquare},
		{"values, unequal spacings", append(given(u), square...), equal, unequal, inSquare},
		{"derivatives and screening", append(derived, screened...), equal, equal, inSquare},
		{"derivatives and screening, unequal spacings", append(derived, screened...), unequal, equal, inSquare},
		{"values and derivatives", append(mixed, square...), equal, equal, inSquare},
		{"values and derivatives, unequal spacings", append(mixed, square...), equal, unequal, inSquare},
		{"a ring", append(ring, "problem.top="+around, "problem.bottom="+around), [2]int{34, 66}, equal, inRing},
		{"a ring with a derivative", append(ring, "problem.top=neumann(0)", "problem.bottom="+around), [2]int{34, 66},
			equal, inRing},
		{"a torus", torus, [2]int{18, 34}, [2]int{18, 34}, inTorus},
		{"a torus with unequal spacings", torus, [2]int{18, 34}, [2]int{26, 50}, inTorus},
	}
}

// openEnd are the keys of a float64 problem that sweeps until it changes no more, or as later keys say.
func openEnd(nx, ny int, keys ...string) []string {
	return append([]string{"problem.preset=dirichlet", "problem.top=0", fmt.Sprintf("grid.nx=%d", nx),
		fmt.Sprintf("grid.ny=%d", ny), "grid.dtype=float64", "solver.max_iterations=1000000", "solver.tolerance=0",
		"output.picture="}, keys...)
}

// solveField solves a problem with one rank and returns the field.
func solveField(t *testing.T, nx, ny int, keys ...string) []float64 {
	t.Helper()
	dir := t.TempDir()
	mustRun(t, dir, "launcher", onRanks(1, openEnd(nx, ny, keys...)...)...)
	return readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
}

// reportsError runs a problem with the keys of its end and checks that the error in the report is within a factor of
// three of that of the field.
func reportsError(t *testing.T, exact []float64, nx, ny int, keys []string, end ...string) (outcome, report) {
	t.Helper()
	dir := t.TempDir()
	out := run(t, dir, "launcher", onRanks(2, append(openEnd(nx, ny, keys...), end...)...)...)
	r, worst := readReport(t, filepath.Join(dir, "out")), 0.0
	for i, v := range readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny) {
		worst = max(worst, math.Abs(v-exact[i]))
	}
	if got := r.Accuracy.Error; got < worst/3 || got > 3*worst || out.code != exits[r.Verdict] {
		t.Errorf("%v: the report says %.3g, the field has %.3g; exit code %d\n%s%s", end, got, worst, out.code,
			out.stdout, out.stderr)
	}
	return out, r
}

// For every kind of wall, the error of a solution falls with the square of the spacings: halving them divides it by
// four. The error that a run reports is true when a tolerance ended it, and when float32 stalled.
func TestErrorsOfEveryWall(t *testing.T) {
	t.Parallel()
	for _, c := range manufacturedProblems() {
		t.Run(c.name, func(t *testing.T) {
			var worst [2]float64
			var field []float64
			for i := range worst {
				nx, ny := c.nx[i], c.ny[i]
				field = solveField(t, nx, ny, append(c.args, "solver.tolerance=1e-13")...)
				for k, v := range field {
					worst[i] = max(worst[i], math.Abs(v-c.u(k%nx, k/nx, nx, ny)))
				}
			}
			if slope := math.Log2(worst[0] / worst[1]); slope < 1.9 || slope > 2.1 {
				t.Errorf("errors %.3g and %.3g: slope %.3f, want 1.9 to 2.1", worst[0], worst[1], slope)
			}
			if _, r := reportsError(t, field, c.nx[1], c.ny[1], c.args, "solver.tolerance=1e-5"); r.Verdict != "met" {
				t.Errorf("the tolerance is %s", r.Verdict)
			}
			// A norm of 0 in float32 meets 1e-20 only where the unit of the sums is fine enough to prove it.
			_, r := reportsError(t, field, c.nx[1], c.ny[1], c.args, "solver.tolerance=1e-20", "grid.dtype=float32")
			if r.Verdict != "met" && (r.StopReason != "stalled" || r.Verdict != "missed") {
				t.Errorf("float32 ends as %s, %s", r.StopReason, r.Verdict)
			}
		})
	}
}

// The reported error is also true when the norm met a tolerance below the resolution of float32, and far from the
// solution.
func TestReportedError(t *testing.T) {
	t.Parallel()
	keys := []string{"problem.top=1", "grid.dtype=float32", "solver.max_iterations=100000"}
	exact := solveField(t, 65, 65, "problem.top=1", "solver.tolerance=1e-13")
	for end, result := range map[string]string{
		"solver.tolerance=1e-7":      "; rounding in float32 alone leaves such a norm",
		"solver.tolerance=1e-20":     "take a problem.initial that is nearer to the solution, as norms below it count",
		"solver.max_iterations=2000": "not converged: stopped at max_iterations",
	} {
		more := []string{end}
		if strings.HasPrefix(end, "solver.max") {
			more = append(more, "solver.tolerance=1e-8")
		}
		if out, _ := reportsError(t, exact, 65, 65, keys, more...); !strings.Contains(out.stdout, result) {
			t.Errorf("%s: no %q in\n%s%s", end, result, out.stdout, out.stderr)
		}
	}
}

// The quickstart is solved, and its capacitance is that of the formula: 8 K(sqrt(3)/2) / K(1/2).
func TestQuickstart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := runNatural(t, "../..", "launcher", append(set("output.dir="+dir), "--config", "configs/quickstart.yaml")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	// K(k) is pi/2 over the arithmetic-geometric mean of 1 and sqrt(1 - k^2).
	mean := func(a, b float64) float64 {
		for range 10 {
			a, b = (a+b)/2, math.Sqrt(a*b)
		}
		return a
	}
	r, want := readReport(t, dir), 8*mean(1, math.Sqrt(3)/2)/mean(1, 0.5)
	if r.Verdict != "met" || len(r.Ranks) != 4 || len(r.Results.Regions) != 1 {
		t.Fatalf("%s, %d ranks, regions %+v", r.Verdict, len(r.Ranks), r.Results.Regions)
	}
	flux, energy := *r.Results.Regions[0].Flux, *r.Results.Energy
	if math.Abs(flux/want-1) > 3e-4 || math.Abs(2*energy/want-1) > 3e-4 {
		t.Errorf("flux %.6g, twice the energy %.6g, want %.6g", flux, 2*energy, want)
	}
	if text := fmt.Sprintf("in the summary, %.5g,", flux); !strings.Contains(readText(t, "../../README.md"), text) {
		t.Errorf("README.md has no %q", text)
	}
}

// rounded is text whose longer numbers have 8 digits: what a tolerance leaves of a solution shows in the last ones.
func rounded(text string) string {
	return regexp.MustCompile(`\d+\.\d{7,}`).ReplaceAllStringFunc(text, func(number string) string {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return fmt.Sprintf("%.8g", x)
	})
}

// The examples give what docs/problems.md says of them.
func TestExamplesOfProblems(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"capacitor": {"Energy         8.776160593", "258 points at 1, the first at (0.25, 0.4023): flux 8.77616064",
			"258 points at -1, the first at (0.25, 0.5938): flux -8.776160637"},
		"coaxial": {"4,637 points at 1, the first at (0.4805, 0.3516): flux 5.719067606"},
		"spheres": {"18,088 points at 0, the first at (0, 0.007812): flux -4.712396576 +- 2e-05",
			"1,637 points at 1, the first at (0, 0.75): flux 4.712396576 +- 2e-05", "axis 0.2500200608 +- 2e-05"},
		"plate": {"Flux           left -2.580078125 +- 0.0001, right -0.6199217552 +- 0.0006, top 0, bottom 0",
			"Balance        in 3.2 (source 3.2), out 3.19999988, remainder 1.2e-07"},
		"flow":       {"1,485 points at 0.5"},
		"microstrip": {"Materials      board 4.4", "strip at 1, 42 points: flux 9.764319064 +- 0.1"},
		"studs":      {"Flux           left 0, right 0, top -8.402578559 +- 0.003, bottom 8.402578562 +- 0.003"},
		"hole":       {"Flux           left 0.7767208366 +- 4e-06, right -0.7767208355 +- 4e-06, top 0, bottom 0"},
		"wires": {"Fixed points   8,895: left 1, middle 0.236466 (floating), right 0",
			"left at 1, 2,965 points: flux 4.065304 +- 0.0002",
			"middle at 0.2364659104 +- 5e-06 (floating), 2,965 points: flux 3.975675077e-08",
			"right at 0, 2,965 points: flux -0.2637374658 +- 2e-05",
			"left            4.31396    -1.05157  -0.0150767", "middle         -1.05157     4.44703    -1.05157",
			"right        -0.0150767    -1.05157     4.31396"},
		"pair": {"Fixed points   1,170: configs/pair.png: minus -1, plus 1",
			"plus at 1, 585 points: flux 5.549084232 +- 0.02", "minus at -1, 585 points: flux -5.549084232 +- 0.02"},
	} {
		out := runNatural(t, "../..", "launcher", append(set("output.dir="+t.TempDir()), "--config",
			"configs/"+name+".yaml")...)
		if out.code != 0 || !strings.Contains(out.stdout, "converged") {
			t.Errorf("%s: exit code %d\n%s%s", name, out.code, out.stdout, out.stderr)
		}
		for i, text := range want {
			if !strings.Contains(rounded(out.stdout), rounded(text)) {
				t.Errorf("%s: no %q in\n%s", name, text, out.stdout)
			}
			told := name != "coaxial" && name != "flow" && (name == "capacitor" || i > 0 || len(want) == 1)
			if told && !strings.Contains(rounded(string(doc)), rounded(text)) {
				t.Errorf("docs/problems.md has no %q (%d)", text, i)
			}
		}
	}
}
