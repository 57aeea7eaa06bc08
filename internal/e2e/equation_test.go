package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"jacobi/internal/compute/results"
)

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

// The error of a solution falls with the square of the spacings: halving them divides it by four.
func TestErrorFallsWithTheSquareOfTheSpacing(t *testing.T) {
	t.Parallel()
	for _, c := range manufacturedProblems() {
		t.Run(c.name, func(t *testing.T) {
			var worst [2]float64
			for i := range worst {
				nx, ny := c.nx[i], c.ny[i]
				field := solveField(t, nx, ny, append([]string{"solver.tolerance=1e-12"}, c.args...)...)
				for iy := range ny {
					for ix := range nx {
						worst[i] = max(worst[i], math.Abs(field[iy*nx+ix]-c.u(ix, iy, nx, ny)))
					}
				}
			}
			if slope := math.Log2(worst[0] / worst[1]); slope < 1.9 || slope > 2.1 {
				t.Errorf("errors %.3g and %.3g: slope %.3f, want 1.9 to 2.1", worst[0], worst[1], slope)
			}
		})
	}
}

// solveField solves a float64 problem with one rank until it changes no more, or as args say, and returns the field.
func solveField(t *testing.T, nx, ny int, args ...string) []float64 {
	t.Helper()
	dir := t.TempDir()
	all := append([]string{"problem.preset=dirichlet", "problem.top=0", fmt.Sprintf("grid.nx=%d", nx),
		fmt.Sprintf("grid.ny=%d", ny), "grid.dtype=float64", "solver.max_iterations=1000000", "solver.tolerance=0",
		"output.picture="}, args...)
	out := run(t, dir, "launcher", append(set(all...), "-np", "1")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	return readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
}

// The field solves the equations of the five points, which a dense matrix holds here as docs/numerics.md states them.
func TestFieldSolvesTheEquations(t *testing.T) {
	t.Parallel()
	const nx, ny, width, height, k2 = 19, 26, 3.0, 2.0, 1.5
	const hx, hy = width / (nx - 1), height / (ny - 1)
	// Values on the right, derivatives on the left and below, an island that is fixed, and values on top.
	f := func(ix, iy int) float64 { return math.Sin(float64(3*ix)) + float64(iy) }
	initial := func(ix, iy int) float64 { return 1 + float64(ix)/(nx-1) }
	fixed := func(ix, iy int) bool {
		return ix == nx-1 || iy == 0 || ix >= 5 && ix <= 7 && iy >= 8 && iy <= 12
	}
	field := solveField(t, nx, ny, fmt.Sprintf("grid.width=%v", width), fmt.Sprintf("grid.height=%v", height),
		"problem.source=sin(3*ix)+iy", fmt.Sprintf("problem.screening=%v", k2), "problem.left=neumann(y)",
		"problem.right=2", "problem.top=1+x", "problem.bottom=neumann(-2)", "problem.initial=1+x",
		"problem.fixed=ix >= 5 and ix <= 7 and iy >= 8 and iy <= 12")

	a, b := mat.NewDense(nx*ny, nx*ny, nil), mat.NewVecDense(nx*ny, nil)
	for iy := range ny {
		for ix := range nx {
			i := iy*nx + ix
			if fixed(ix, iy) {
				a.Set(i, i, 1)
				b.SetVec(i, initial(ix, iy))
				continue
			}
			a.Set(i, i, 2/(hx*hx)+2/(hy*hy)+k2)
			b.SetVec(i, f(ix, iy))
			at := func(jx, jy int, weight, beyond float64) {
				switch { // the value beyond a wall is that of the mirror point and twice the derivative
				case jx < 0:
					jx = 1
					b.SetVec(i, b.AtVec(i)+weight*beyond)
				case jy == ny:
					jy = ny - 2
					b.SetVec(i, b.AtVec(i)+weight*beyond)
				}
				a.Set(i, jy*nx+jx, a.At(i, jy*nx+jx)-weight)
			}
			at(ix-1, iy, 1/(hx*hx), 2*hx*float64(iy)/(ny-1))
			at(ix+1, iy, 1/(hx*hx), 0)
			at(ix, iy-1, 1/(hy*hy), 0)
			at(ix, iy+1, 1/(hy*hy), 2*hy*-2)
		}
	}
	var want mat.VecDense
	if err := want.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	for i, got := range field {
		if math.Abs(got-want.AtVec(i)) > 1e-11 {
			t.Fatalf("row %d, column %d: %.17g, want %.17g", i/nx, i%nx, got, want.AtVec(i))
		}
	}
}

// The error that the report estimates is within a factor of three of the error of the field for every kind of wall:
// when a tolerance ended the run, and when float32 stalled.
func TestReportedErrorOfEveryWall(t *testing.T) {
	t.Parallel()
	for _, c := range manufacturedProblems() {
		t.Run(c.name, func(t *testing.T) {
			nx, ny := c.nx[1], c.ny[1]
			exact := solveField(t, nx, ny, append([]string{"solver.tolerance=1e-13"}, c.args...)...)
			for _, end := range [][]string{{"solver.tolerance=1e-5"}, {"grid.dtype=float32"}} {
				dir := t.TempDir()
				args := append(append(slices.Clone(c.args), "problem.preset=dirichlet", fmt.Sprintf("grid.nx=%d", nx),
					fmt.Sprintf("grid.ny=%d", ny), "grid.dtype=float64", "solver.max_iterations=1000000",
					"solver.tolerance=1e-20", "output.picture="), end...)
				out := run(t, dir, "launcher", append(set(args...), "-np", "2")...)
				r := readReport(t, filepath.Join(dir, "out"))
				// A norm of 0 in float32 meets 1e-20 only where the unit of the sums is fine enough to prove it.
				stalled := r.StopReason == "stalled" && r.Verdict == "missed" && end[0] == "grid.dtype=float32"
				if !stalled && r.Verdict != "met" || out.code != exits[r.Verdict] {
					t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
				}
				worst := 0.0
				for i, v := range readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny) {
					worst = max(worst, math.Abs(v-exact[i]))
				}
				if got := r.Accuracy.Error; got < worst/3 || got > 3*worst {
					t.Errorf("%v: the report says %.3g, the field has %.3g", end, got, worst)
				}
			}
		})
	}
}

// A run between Neumann walls ends with the same field and norms for every halo depth, wherever in a pass its end lies.
func TestStopsWithinPassesBetweenNeumannWalls(t *testing.T) {
	t.Parallel()
	for _, tolerance := range []string{"0.02", "0.011", "0.003", "0.0007", "1e-4", "3e-6"} {
		var first answer
		for i, depth := range []string{"1", "7", "16"} {
			got, _ := solve(t, append(set("grid.nx=40", "grid.ny=52", "problem.preset=dirichlet", "problem.top=1",
				"problem.left=neumann(0)", "problem.right=neumann(sin(9*y))", "problem.bottom=neumann(-1)",
				"solver.tolerance="+tolerance, "solver.max_iterations=100000", "halo.depth="+depth, "output.field=",
				"output.picture="), "-np", "2")...)
			if i == 0 {
				first = got
			}
			if got != first {
				t.Errorf("tolerance %s, depth %s: %s after %d sweeps, field %s; depth 1: %s after %d sweeps, field %s",
					tolerance, depth, got.reason, got.sweeps, got.sha, first.reason, first.sweeps, first.sha)
			}
			if got.reason != "converged" {
				t.Errorf("tolerance %s: %s", tolerance, got.reason)
			}
		}
	}
}

// resultsOf solves a problem with the given number of ranks and returns the results and the field of its report.
func resultsOf(t *testing.T, ranks string, args ...string) (results.Results, answer) {
	t.Helper()
	got, rep := solve(t, append(set(append([]string{"grid.dtype=float64", "problem.preset=dirichlet", "problem.top=0",
		"solver.max_iterations=1000000", "output.picture="}, args...)...), "-np", ranks)...)
	if rep.Results == nil {
		t.Fatal("the report has no results")
	}
	return *rep.Results, got
}

// The charge of a coaxial line is that of the formula, 2 pi / ln(b/a) per volt, but for the steps of its round
// conductors; it is also twice the energy, and the same bits for any number of ranks.
func TestCapacitanceOfACoaxialLine(t *testing.T) {
	t.Parallel()
	const a, b = 0.15, 0.45
	for _, c := range []struct {
		n      string
		within float64
	}{{"65", 0.06}, {"129", 0.03}} {
		args := []string{"grid.nx=" + c.n, "grid.ny=" + c.n, "solver.tolerance=1e-10",
			"problem.fixed=hypot(x-0.5, y-0.5) <= 0.15 or hypot(x-0.5, y-0.5) >= 0.45",
			"problem.initial=hypot(x-0.5, y-0.5) <= 0.15 ? 1 : 0"}
		got, field := resultsOf(t, "1", args...)
		many, same := resultsOf(t, "4", args...)
		if !reflect.DeepEqual(got, many) || field != same {
			t.Errorf("one rank: %+v; four: %+v", got, many)
		}
		var inner *results.Region
		outer := 0.0
		for i, g := range got.Regions {
			if g.Max == 1 {
				inner = &got.Regions[i]
			} else {
				outer += *g.Flux
			}
		}
		for _, wall := range got.Flux {
			outer += *wall
		}
		if inner == nil || inner.Min != 1 {
			t.Fatalf("regions %+v: none is the inner conductor", got.Regions)
		}
		charge, want := *inner.Flux, 2*math.Pi/math.Log(b/a)
		if math.Abs(charge/want-1) > c.within {
			t.Errorf("%s points: charge %v, want %v within %v", c.n, charge, want, c.within)
		}
		if math.Abs(charge+outer) > 1e-6 || math.Abs(*got.Energy-charge/2) > 1e-6 {
			t.Errorf("%s points: charges %v inside and %v outside, energy %v", c.n, charge, outer, *got.Energy)
		}
	}
}

// What the source makes flows out through the walls and the fixed points, and what the screening absorbs is missing.
func TestFluxesBalanceTheSource(t *testing.T) {
	t.Parallel()
	const hx, hy, k2 = 2.0 / 40, 1.0 / 30, 2.0
	got, _ := resultsOf(t, "3", "grid.nx=41", "grid.ny=31", "grid.width=2", "grid.height=1", "solver.tolerance=1e-12",
		"problem.source=4", "problem.screening=2", "problem.left=neumann(1)", "problem.right=neumann(-y)",
		"problem.bottom=neumann(0)", "problem.initial=3", "problem.fixed=ix >= 10 and ix < 15 and iy >= 8 and iy < 18")
	if len(got.Regions) != 1 || got.Regions[0].Points != 50 || got.Regions[0].Min != 3 || got.Regions[0].Max != 3 {
		t.Fatalf("regions %+v", got.Regions)
	}
	out := *got.Regions[0].Flux
	for _, wall := range []string{"left", "right", "top", "bottom"} {
		out += *got.Flux[wall]
	}
	if left := *got.Flux["left"]; math.Abs(left-1) > 1e-12 {
		t.Errorf("flux through the left wall %v, want 1", left)
	}
	// All cells of the mesh have a free corner but 4 x 9 within the fixed points, whose corners are 3.
	free := 2.0*1 - 4*9*hx*hy
	absorbed := k2 * (*got.Mean*2*1 - 4*9*hx*hy*3)
	if balance := out + 4*free - absorbed; math.Abs(balance) > 1e-8 {
		t.Errorf("flux %v, source %v, absorbed %v: %v is left", out, 4*free, absorbed, balance)
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
	readme, err := os.ReadFile("../../README.md")
	if text := fmt.Sprintf("in the summary, %.5g,", flux); err != nil || !strings.Contains(string(readme), text) {
		t.Errorf("README.md has no %q, %v", text, err)
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
		"capacitor": {"Energy         8.776160593", "258 points at 1, the first at (0.25, 0.4023): flux 8.776160612",
			"258 points at -1, the first at (0.25, 0.5938): flux -8.776160595"},
		"coaxial":    {"4,637 points at 1, the first at (0.4805, 0.3516): flux 5.656321465"},
		"plate":      {"Flux           left -2.570426941, right -0.6034010642, top 0, bottom 0"},
		"flow":       {"1,487 points at 0.5"},
		"microstrip": {"Materials      board 4.4", "strip at 1, 21 points: flux 9.367439838"},
		"studs":      {"Flux           left 0, right 0, top -8.362064666, bottom 8.362064682"},
		"hole":       {"Flux           left 0.7743611161, right -0.774361113, top 0, bottom 0"},
		"pair": {"Fixed points   1,170: configs/pair.png: minus -1, plus 1",
			"plus at 1, 585 points: flux 5.549084005", "minus at -1, 585 points: flux -5.549084005"},
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
