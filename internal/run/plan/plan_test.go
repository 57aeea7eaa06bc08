package plan

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/run/hosts"
)

// planOf returns the plan for arguments of --set.
func planOf(t *testing.T, args ...string) (*Plan, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	var set []string
	for _, a := range args {
		if a != "--set" {
			set = append(set, a)
		}
	}
	cfg, err := configs.Load(configs.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	here, err := hosts.OnThisHost(cfg.Run.Ranks)
	if err != nil {
		t.Fatal(err)
	}
	return New(t.Context(), cfg, here)
}

// What would end a run after its start is refused before it.
func TestRefusals(t *testing.T) {
	small := []string{"grid.nx=64", "grid.ny=128"}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--set problem.left=foo(x)", []string{`problem.left "foo(x)": `}},
		{"--set device.backend=gpu", []string{`device.backend "gpu": allowed are auto, cpu and cuda`}},
		{"--set problem.top=1/y --set problem.bottom=0", []string{`problem.top "1/y"`}},
		{"--set output.dir=/proc/nowhere", []string{`output.dir "/proc/nowhere": cannot be created`}},
		{"--set grid.nx=2000000 --set grid.ny=2000000",
			[]string{"grid.nx 2000000, grid.ny 2000000: memory: ", "are needed", "are available",
				`output.dir "out": not enough space: `}},
		{"--set checkpoint.every=5 --set checkpoint.dir=/proc/nowhere",
			[]string{`checkpoint.dir "/proc/nowhere": cannot be created`}},
	} {
		p, planned := planOf(t, append(small, strings.Fields(c.args)...)...)
		for _, create := range []bool{false, true} { // a dry run refuses what a run does
			err := planned
			if err == nil {
				err = p.Check(t.Context(), create)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, create %t: error %v\nwant %q in it", c.args, create, err, want)
				}
			}
		}
	}
}

// The memory in which ranks read a picture counts with that of their fields.
func TestMemoryOfPictures(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 100, 64))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := planOf(t, "grid.nx=64", "grid.ny=64", "run.ranks=3", "device.backend=cpu", "problem.drawing="+path,
		"problem.colours=#000000 coefficient=2")
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(2 * 100 * 64); p.Pictures != want || p.PicturesHere() != 3*want {
		t.Errorf("%d bytes for a picture, %d for all, want %d and %d", p.Pictures, p.PicturesHere(), want, 3*want)
	}
	if err := p.checkMemory(); err != nil {
		t.Error(err)
	}
	p.Pictures = 1 << 50
	err = p.checkMemory()
	const first, last = "grid.nx 64, grid.ny 64: memory: 3145728.00 GiB are needed and ", "; take a smaller grid, or " +
		"more machines, or a smaller picture: to read it, the ranks take 3.0 PiB of that"
	if err == nil || !strings.HasPrefix(err.Error(), first) || !strings.HasSuffix(err.Error(), last) {
		t.Errorf("error %v, want %s...%s", err, first, last)
	}
}

// Every method needs a free point, sweeps a constant, and cycles something that flows.
func TestNoUniqueSolution(t *testing.T) {
	insulated := []string{"problem.left=neumann(0)", "problem.right=neumann(0)", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)"}
	const constant = `problem.left "neumann(0)", right "neumann(0)", top "neumann(0)", bottom "neumann(0)", source ` +
		`"0": no side has values and nothing flows in, so the field would be 0 everywhere; give a source, a flux or ` +
		`a value on a side`
	const sweeps = `solver.method "jacobi": no side has values, so any constant can be added to a solution, and ` +
		`sweeps keep what alternates from point to point; take multigrid, which finds the field with the mean 0, or ` +
		`give a value on a side or points in problem.fixed`
	for _, c := range []struct {
		keys []string
		want string
	}{
		{insulated, constant},
		{append(insulated, "problem.fixed=ix == 5 and iy == 5"), ""},
		{append(insulated, "problem.screening=1"), ""},
		{[]string{"problem.fixed=true"}, `problem.fixed "true": it fixes all 3844 points that a sweep could change; ` +
			`at least one has to be free`},
	} {
		for _, method := range []string{"auto", "jacobi", "multigrid"} {
			p, err := planOf(t, append(c.keys, "solver.method="+method, "grid.nx=64", "grid.ny=64",
				"grid.dtype=float64", "problem.preset=dirichlet", "solver.max_iterations=100000")...)
			if err == nil {
				err = p.Check(t.Context(), false)
			}
			want := c.want
			if method == "jacobi" && want == constant {
				want = sweeps
			}
			if text := fmt.Sprint(err); text != want && (err != nil || want != "") {
				t.Errorf("%s with %q:\ngot  %s\nwant %s", method, c.keys, text, want)
			}
		}
	}
}

// A run that cannot meet its tolerance is warned, and one that would do many sweeps is told of the method that fits.
func TestExpects(t *testing.T) {
	const below, larger = " is below what float64 attains on this mesh", "a larger one is met"
	const faster = "solver.method multigrid meets a tolerance in far less time, mostly in 5 to 20 cycles"
	hot := "grid.nx=256 grid.ny=256 device.backend=cpu problem.top=1 "
	for _, c := range []struct {
		args string
		want Expectation
	}{
		{"solver.method=jacobi solver.tolerance=1e-30", Expectation{"solver.tolerance 1e-30" + below, larger, ""}},
		{"solver.tolerance=1e-30", Expectation{"solver.tolerance 1e-30" + below, larger, ""}},
		{"problem.top=0 problem.source=1 solver.tolerance=1e-30",
			Expectation{"solver.tolerance 1e-30" + below, larger, ""}},
		{"solver.relative_tolerance=1e-30", Expectation{"solver.relative_tolerance 1e-30" + below, larger, ""}},
		{"solver.method=jacobi grid.dtype=float32 solver.tolerance=1e-8 grid.nx=2048 grid.ny=2048",
			Expectation{"solver.tolerance 1e-08 is below what float32 attains on this mesh",
				"grid.dtype=float64 attains it", ""}},
		{"solver.method=jacobi grid.dtype=float32 solver.tolerance=1e-6 solver.max_iterations=1000", Expectation{}},
		{"", Expectation{}},
		{"solver.method=jacobi solver.tolerance=1e-8 solver.max_iterations=100000", Expectation{Hint: faster}},
		{"solver.method=jacobi solver.tolerance=1e-8 solver.max_iterations=1000", Expectation{}},
		{"solver.method=jacobi solver.tolerance=1e-8 solver.max_iterations=100000 grid.nx=32 grid.ny=32",
			Expectation{}},
		{"problem.coefficient=1+x solver.tolerance=1e-30", Expectation{}},
	} {
		p, err := planOf(t, strings.Fields(hot+c.args)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Expects(t.Context()); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.args, got, c.want)
		}
	}
}

func TestWrites(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"grid.nx=16384", "writes out/field.npy (1.0 GiB), field.png, history.csv, report.json; " +
			"--set output.field= leaves the field out"},
		{"grid.nx=64", "writes out/field.npy (16 KiB), field.png, history.csv, report.json"},
		{"grid.nx=64 output.every=100", "writes out/field.npy (16 KiB) and field-*.npy every 100 sweeps, field.png, " +
			"history.csv, report.json"},
		{"grid.nx=64 problem.left=1 grid.dtype=float32 output.every=9 run.ranks=2", "writes out/field.npy (16 KiB) " +
			"and field-*.npy every 9 cycles, field.png, history.csv, report.json"},
		{"grid.nx=64 problem.left=1 output.gradient=true", "writes out/field.npy (32 KiB), field-flux_x.npy, " +
			"field-flux_y.npy, field.png, history.csv, report.json"},
		{"grid.nx=64 problem.left=1 output.gradient=true output.field=u.vti", "writes out/u.vti (98 KiB), field.png, " +
			"history.csv, report.json"},
		{"output.field= output.dir=there", "writes there/field.png, history.csv, report.json"},
		{"output.field= output.picture= output.history= output.report=", "writes no files"},
	} {
		p, err := planOf(t, strings.Fields(c.args)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Writes(); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}

// The plan says where ranks may choose deeper halos than it states.
func TestWhyDepth(t *testing.T) {
	const (
		preferred = "auto: preferred by the CUDA backend, at most the 63 rows of the lowest stripe"
		measured  = preferred + "; the ranks measure the network and may take a multiple of it"
	)
	for _, c := range []struct{ args, want string }{
		{"halo.transport=nats", measured},
		{"halo.transport=direct", preferred}, // all on this host
		{"halo.transport=nats halo.depth=3", "halo.depth"},
	} {
		p, err := planOf(t, append(strings.Fields(c.args), "grid.nx=64", "grid.ny=130", "run.ranks=2",
			"device.backend=cpu")...)
		if err != nil {
			t.Fatal(err)
		}
		prob, err := problem.New(t.Context(), p.Config)
		if err != nil {
			t.Fatal(err)
		}
		for _, onGPUs := range []bool{true, false} {
			want := c.want
			if !onGPUs {
				want = strings.Replace(want, "CUDA", "CPU", 1)
			}
			if _, why, err := divide(p.Config, p.Places, prob, onGPUs); why != want || err != nil {
				t.Errorf("%s: %s, %v, want %s", c.args, why, err, want)
			}
		}
	}
}

// The plan has the stripes of the given weights, and says so.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		keys, rows, text string
		least            int // rank with the least memory
	}{
		{"run.balance=1,3", "[[1, 32) [32, 129)]", "in proportion to 1,3 (run.balance)", 0},
		{"run.balance=3,1", "[[1, 96) [96, 129)]", "in proportion to 3,1 (run.balance)", 1},
		{"run.balance=equal", "[[1, 64) [64, 129)]", "", 0},
		{"run.balance=auto", "[[1, 64) [64, 129)]",
			"equal; run.balance auto: the ranks may take others, by the speeds that they measure", 0},
		{"run.balance=1,9 solver.method=multigrid grid.dtype=float64", "[[1, 16) [16, 129)]",
			"in proportion to 1,9 (run.balance)", 0},
	} {
		p, err := planOf(t, append(strings.Fields(c.keys), "grid.nx=64", "grid.ny=130", "run.ranks=2",
			"device.backend=cpu")...)
		if err != nil {
			t.Fatal(err)
		}
		if rows := fmt.Sprint(p.Stripes); rows != c.rows || p.Balance() != c.text {
			t.Errorf("%s: %s, %q, want %s, %q", c.keys, rows, p.Balance(), c.rows, c.text)
		}
		if p.Memory[c.least] > p.Memory[1-c.least] {
			t.Errorf("%s: memory %v", c.keys, p.Memory)
		}
	}
}

// The first line says what is solved, in which type, and by which method.
func TestString(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "gtc2019, 64 x 64 float32, jacobi (auto: problem.preset gtc2019)"},
		{"problem.left=1", "Laplace equation, 64 x 64 float64, multigrid (auto: any problem but gtc2019)"},
		{"problem.source=1 grid.dtype=float32", "Poisson equation, 64 x 64 float64 (files float32), multigrid (auto: " +
			"any problem but gtc2019)"},
		{"problem.preset=dirichlet grid.dtype=float32 solver.method=jacobi", "dirichlet, 64 x 64 float32, jacobi"},
	} {
		p, err := planOf(t, append(strings.Fields(c.args), "grid.nx=64", "grid.ny=64", "run.ranks=2")...)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(p.String(), ": "); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
}
