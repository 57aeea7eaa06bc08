package configs

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Load takes the method by solver.method and the preset alone, the type by these and grid.dtype, and says why.
func TestAuto(t *testing.T) {
	const own, benchmark = "multigrid (auto: any problem but gtc2019)", "jacobi (auto: problem.preset gtc2019)"
	for _, c := range []struct {
		set                   []string
		method, preset, dtype string
	}{
		{nil, benchmark, "gtc2019", "float32"},
		{[]string{"grid.nx=64", "grid.ny=99", "run.ranks=2"}, benchmark, "gtc2019", "float32"},
		{[]string{"grid.dtype=float64"}, benchmark, "gtc2019", "float64"},
		{[]string{"solver.method=auto"}, benchmark, "gtc2019", "float32"},
		{[]string{"solver.method=multigrid"}, "multigrid", "gtc2019", "float64"},
		{[]string{"solver.tolerance=1e-3", "solver.relative_tolerance=1e-8"}, benchmark, "gtc2019", "float32"},
		{[]string{"problem.preset=gtc2019", "problem.source=1", "grid.width=2"}, benchmark, "gtc2019", "float32"},
		{[]string{"problem.preset=dirichlet"}, own, "dirichlet", "float64"},
		{[]string{"problem.preset="}, own, "", "float64"},
		{[]string{"problem.left=1"}, own, "", "float64"},
		{[]string{"problem.screening=0"}, own, "", "float64"},
		{[]string{"grid.height=auto"}, own, "", "float64"},
		{[]string{"problem.left=1", "grid.dtype=float32"}, own, "", "float64"},
		{[]string{"problem.left=1", "solver.method=jacobi"}, "jacobi", "", "float64"},
		{[]string{"problem.left=1", "solver.method=jacobi", "grid.dtype=float32"}, "jacobi", "", "float32"},
		{[]string{"problem.left=1", "solver.max_iterations=50"}, own, "", "float64"},
		{[]string{"problem.screening=1e9", "grid.nx=9", "grid.ny=9"}, own, "", "float64"},
	} {
		got, err := Load(Options{Set: c.set})
		if err != nil || got.Solver.MethodText() != c.method || got.Problem.Preset != c.preset ||
			got.Grid.DType != c.dtype {
			t.Errorf("%q: %s, %q, %s, %v; want %s, %q, %s", c.set, got.Solver.MethodText(), got.Problem.Preset,
				got.Grid.DType, err, c.method, c.preset, c.dtype)
		}
		narrow := c.dtype == "float64" && slices.Contains(c.set, "grid.dtype=float32")
		if got.Output.Float32 != narrow {
			t.Errorf("%q: files of float32 %t, want %t", c.set, got.Output.Float32, narrow)
		}
		// The ranks of a launcher get what Load made of the keys.
		again, err := passed(got)
		got.Grid.Named = got.Grid.DType
		if err != nil || again != got || Hash(again) != Hash(got) {
			t.Errorf("%q: through the environment %+v, %v; want %+v", c.set, again, err, got)
		}
	}
}

// loadsPoints checks the numbers of points with keys that --set sets, also as the ranks get them.
func loadsPoints(t *testing.T, set []string, nx, ny int) {
	t.Helper()
	got, err := Load(Options{Set: set})
	if err != nil || got.Grid.NX != nx || got.Grid.NY != ny {
		t.Errorf("%q: %d x %d, %v; want %d x %d", set, got.Grid.NX, got.Grid.NY, err, nx, ny)
	}
	if again, err := passed(got); err != nil || again.Grid.NX != nx || again.Grid.NY != ny {
		t.Errorf("%q, through the environment: %+v, %v", set, again.Grid, err)
	}
}

// A mesh of which one number is named is square, from whichever sources the two come; the ranks get both.
func TestSquare(t *testing.T) {
	for _, c := range []struct {
		set    []string
		nx, ny int
	}{
		{nil, 16384, 16384},
		{[]string{"grid.nx=33"}, 33, 33},
		{[]string{"problem.top=1"}, 513, 513},
		{[]string{"grid.width=2"}, 513, 513},
		{[]string{"problem.preset=dirichlet"}, 513, 513},
		{[]string{"problem.preset=gtc2019", "problem.left=1"}, 16384, 16384},
		{[]string{"grid.ny=33", "problem.top=1"}, 33, 33},
		{[]string{"grid.nx=33", "problem.preset=gtc2019"}, 33, 33},
		{[]string{"grid.nx=33", "grid.ny=17"}, 33, 17},
		{[]string{"grid.nx=2"}, 2, 16384},
	} {
		loadsPoints(t, c.set, c.nx, c.ny)
	}
	got := mustMerge(t, "run.yaml", "grid: {nx: 33}", Options{Environ: []string{"JACOBI_GRID_NY=17"}})
	if got.Grid.NX != 33 || got.Grid.NY != 17 {
		t.Errorf("%+v", got.Grid)
	}
}

// The mesh has a point at each corner of a picture's pixels, or the size of an array, unless the numbers of points are
// given. The ranks get both numbers.
func TestPointsOfFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "drawing.png")
	file := func(name, shape string) string {
		header := "\x93NUMPY\x01\x00\x40\x00" + fmt.Sprintf("%-63s\n",
			"{'descr': '<f8', 'fortran_order': False, 'shape': "+shape+", }")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(header), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	array, line, other := file("a.npy", "(25, 35)"), file("line.npy", "(9,)"), file("other.npy", "(7,)")
	stack := file("stack.npy", "(2, 25, 35)") // which is refused
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, 30, 20))), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set    []string
		nx, ny int
	}{
		{[]string{"problem.drawing=" + path}, 31, 21},
		{[]string{"problem.drawing=" + path, "problem.left=periodic", "problem.right=periodic"}, 32, 21},
		{[]string{"problem.fixed=" + path, "grid.width=2"}, 31, 21},
		{[]string{"problem.drawing=" + path, "grid.nx=16384", "grid.ny=16384"}, 16384, 16384},
		{[]string{"problem.drawing=" + path, "grid.ny=40"}, 40, 40},
		{[]string{"problem.drawing=" + path + ".gone.png"}, 513, 513},
		{[]string{"problem.source=" + array}, 35, 25},
		{[]string{"problem.coefficient=" + array, "problem.top=1"}, 35, 25},
		{[]string{"problem.initial=" + array, "problem.fixed=" + path}, 31, 21},
		{[]string{"problem.initial=" + array + ".gone.npy"}, 513, 513},
		{[]string{"problem.top=" + line}, 9, 9},
		{[]string{"problem.bottom=" + line, "problem.right=" + other}, 9, 7},
		{[]string{"problem.left=" + line, "problem.source=" + array}, 35, 25},
		{[]string{"problem.left=" + line, "grid.nx=5"}, 5, 5},
		{[]string{"problem.source=" + file("image.npy", "(1, 25, 35)"), "problem.left=" + other}, 35, 25},
		{[]string{"problem.fixed=" + stack, "problem.source=" + array}, 35, 25},
		{[]string{"problem.preset=gtc2019", "problem.initial=" + array}, 35, 25},
	} {
		loadsPoints(t, c.set, c.nx, c.ny)
	}
	base, err := LoadBase(Options{})
	if err != nil {
		t.Fatal(err)
	}
	with, err := base.With(map[string]any{"problem.drawing": path}, "a run", func(string) string { return "" })
	if err != nil || with.Grid.NX != 31 || with.Grid.NY != 21 {
		t.Errorf("with a drawing in a run: %+v, %v", with.Grid, err)
	}
}

// A side that is left out is 0 in a problem of the user's own, and that of the preset where one is named.
func TestSidesLeftOut(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"problem.left=2"}, "2 0 0 0 0 Laplace equation"},
		{[]string{"problem.source=1"}, "0 0 0 0 0 Poisson equation"},
		{[]string{"problem.screening=3"}, "0 0 0 0 0 screened Poisson equation"},
		{[]string{"problem.preset=dirichlet"}, "0 0 1 0 0 dirichlet"},
		{[]string{"problem.preset=gtc2019", "grid.dtype=float64", "problem.left=2"},
			"2 sin(2 * pi * iy / (ny - 1)) periodic periodic 0 gtc2019"},
	} {
		got, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		p, err := got.Problem.Resolve(got.Grid.DType)
		text := strings.Join([]string{p.Left, p.Right, p.Top, p.Bottom, p.Initial, got.Problem.Title()}, " ")
		if err != nil || text != c.want {
			t.Errorf("%q: %s, %v; want %s", c.set, text, err, c.want)
		}
	}
}

// The tolerance is relative by default, but for gtc2019; naming one switches the other's default off.
func TestTolerances(t *testing.T) {
	const own, gtc2019 = "problem.left=1", "problem.preset=gtc2019"
	for _, c := range []struct {
		set                []string
		absolute, relative float64
		asked              bool
	}{
		{nil, 1e-8, 0, true},
		{[]string{gtc2019}, 1e-8, 0, true},
		{[]string{gtc2019, "solver.method=multigrid"}, 1e-8, 0, false},
		{[]string{gtc2019, "solver.tolerance=1e-8"}, 1e-8, 0, false},
		{[]string{gtc2019, "solver.relative_tolerance=1e-6"}, 0, 1e-6, false},
		{[]string{own}, 0, 1e-8, false},
		{[]string{own, "solver.method=jacobi"}, 0, 1e-8, false},
		{[]string{own, "solver.tolerance=1e-3"}, 1e-3, 0, false},
		{[]string{own, "solver.relative_tolerance=1e-3"}, 0, 1e-3, false},
		{[]string{own, "solver.relative_tolerance=1e-3", "solver.tolerance=1e-5"}, 1e-5, 1e-3, false},
		{[]string{own, "solver.tolerance=0"}, 0, 0, true},
		{[]string{own, "solver.relative_tolerance=0"}, 0, 0, true},
	} {
		got, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := passed(got)
		y, e := YAML(got)
		printed := mustMerge(t, "run.yaml", string(y), Options{}) // which does not name a tolerance that is left open
		for _, s := range []Solver{got.Solver, sent.Solver, printed.Solver} {
			if err != nil || e != nil || s.Tolerance != c.absolute || s.RelativeTolerance != c.relative ||
				s.DefaultTolerance != got.Solver.DefaultTolerance ||
				s.IterationsAsked() != c.asked {
				t.Errorf("%q: %g, %g, asked %t, %v; want %g, %g, %t", c.set, s.Tolerance, s.RelativeTolerance,
					s.IterationsAsked(), err, c.absolute, c.relative, c.asked)
			}
		}
	}
}

// A file that names the method, and one that leaves it open, have the same hash if the method is the same.
func TestAutoHash(t *testing.T) {
	file := "problem: {preset: dirichlet}\n"
	open := mustMerge(t, "run.yaml", file, Options{})
	named := mustMerge(t, "run.yaml", file+"solver: {method: multigrid}\n", Options{})
	if Hash(open) != Hash(named) {
		t.Errorf("%+v and %+v have other hashes", open, named)
	}
	reset := mustMerge(t, "run.yaml", file+"solver: {method: jacobi}\n",
		Options{Set: []string{"solver.method=auto"}})
	if reset != open {
		t.Errorf("%+v, want %+v", reset, open)
	}
}

// Continue changes a method and a type that Load took, and no other.
func TestContinue(t *testing.T) {
	for _, c := range []struct {
		set           []string
		method, dtype string // of the checkpoint
		want          string
	}{
		{[]string{"grid.nx=64"}, Multigrid, "float64", "multigrid (auto: that of the checkpoint) float64 false"},
		{[]string{"problem.left=1"}, Jacobi, "float32", "jacobi (auto: that of the checkpoint) float32 false"},
		{[]string{"problem.left=1", "grid.dtype=float32"}, Jacobi, "float32",
			"jacobi (auto: that of the checkpoint) float32 true"},
		{[]string{"problem.left=1", "grid.dtype=float32"}, Multigrid, "float64",
			"multigrid (auto: that of the checkpoint) float64 true"},
		{[]string{"problem.left=1", "solver.method=jacobi"}, Jacobi, "float32", "jacobi float32 false"},
		{[]string{"solver.method=jacobi", "grid.dtype=float64"}, Multigrid, "float32", "jacobi float64 false"},
	} {
		open, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		got := open.Continue(c.method, c.dtype)
		if text := fmt.Sprint(got.Solver.MethodText(), " ", got.Grid.DType, " ", got.Output.Float32); text != c.want {
			t.Errorf("%q: %s, want %s", c.set, text, c.want)
		}
	}
}

// A key that another method has is refused with the reason of the choice, unless a checkpoint is to give the method.
func TestAutoRefuses(t *testing.T) {
	const own = "problem.left=1"
	const first, other = "multigrid, not jacobi (auto: problem.preset gtc2019)",
		"jacobi, not multigrid (auto: any problem but gtc2019)"
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"solver.mesh_error=on"}, `solver.mesh_error "on": needs solver.method ` + first},
		{[]string{"checkpoint.every=5 cycles", "checkpoint.dir=x"},
			`checkpoint.every "5 cycles": needs solver.method ` + first},
		{[]string{own, "halo.depth=2"}, "halo.depth 2: needs solver.method " + other},
		{[]string{own, "solver.norm_every=2"}, "solver.norm_every 2: needs solver.method " + other},
		{[]string{own, "output.every=10 sweeps"}, `output.every "10 sweeps": needs solver.method ` + other},
	} {
		got, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(got); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		got.Checkpoint.Resume = "y"
		if err := Validate(got); err != nil {
			t.Errorf("%q, with a checkpoint: %v", c.set, err)
		}
		if err := Validate(got.Continue(got.Solver.Method, "")); err == nil {
			t.Errorf("%q, with the same method as the checkpoint: no error", c.set)
		}
	}
}
