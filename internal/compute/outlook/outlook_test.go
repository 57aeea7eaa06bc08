package outlook

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/solver"
)

func outlookOf(t *testing.T, nx, ny int, dtype string, p configs.Problem) *Outlook {
	t.Helper()
	cfg := configs.Default()
	cfg.Grid, cfg.Problem = configs.Grid{NX: nx, NY: ny, DType: dtype, Width: 1}, p
	prob, err := problem.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer prob.Close()
	o, err := New(t.Context(), prob)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var (
	dirichlet = configs.Problem{Preset: "dirichlet"}
	walls     = configs.Problem{Preset: "dirichlet", Left: "1", Right: "1", Top: "1", Bottom: "1"}
	periodic  = configs.Problem{Preset: "gtc2019", Left: "1", Right: "1"}
	gtc2019   = configs.Problem{Preset: "gtc2019"}
)

// Runs in float64 needed these numbers of sweeps to a norm of 1e-8.
func TestSweepsToATolerance(t *testing.T) {
	for _, c := range []struct {
		name    string
		nx, ny  int
		problem configs.Problem
		want    float64
	}{
		{"gtc2019", 64, 64, gtc2019, 4617},
		{"gtc2019", 300, 300, gtc2019, 94939},
		{"gtc2019", 33, 40, gtc2019, 4020},
		{"dirichlet", 512, 512, dirichlet, 644721},
	} {
		end, ok := outlookOf(t, c.nx, c.ny, "float64", c.problem).End(1e-8, 1e9)
		if !ok || end.Reason != solver.Converged || math.Abs(end.Sweeps/c.want-1) > 0.01 {
			t.Errorf("%s, %d x %d: %+v, want converged after about %v", c.name, c.nx, c.ny, end, c.want)
		}
	}
}

// Fields in float32 stalled after these numbers of sweeps.
func TestSweepsUntilRounding(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		problem configs.Problem
		sweeps  float64
	}{
		{"dirichlet", 64, dirichlet, 9726}, {"dirichlet", 128, dirichlet, 35186}, {"dirichlet", 256, dirichlet, 126486},
		{"dirichlet", 512, dirichlet, 433961}, {"walls of 1", 64, walls, 9226}, {"walls of 1", 256, walls, 114612},
		{"periodic, walls of 1", 64, periodic, 16183}, {"periodic, walls of 1", 256, periodic, 191622},
		{"gtc2019", 64, gtc2019, 4093}, {"gtc2019", 128, gtc2019, 15532}, {"gtc2019", 256, gtc2019, 55721},
		{"gtc2019", 512, gtc2019, 193177},
	} {
		end, ok := outlookOf(t, c.n, c.n, "float32", c.problem).End(1e-12, 1e9)
		if !ok || end.Reason != solver.Stalled || math.Abs(end.Sweeps/c.sweeps-1) > 0.25 {
			t.Errorf("%s, %d: %+v, want stalled after about %v", c.name, c.n, end, c.sweeps)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		n             int
		dtype         string
		problem       configs.Problem
		tolerance     float64
		maxIterations int
		warning, want string
	}{
		{16384, "float32", gtc2019, 1e-8, 1000, "solver.tolerance 1e-08 is below what float32 attains on this mesh: " +
			"a norm of about 6e-05; grid.dtype=float64 attains it",
			"expected: the end is at the 1,000 sweeps of solver.max_iterations; " +
				"the tolerance takes about 200,000,000"},
		{512, "float32", dirichlet, 1e-20, 1e9, "solver.tolerance 1e-20 is below what float32 attains on this mesh: " +
			"a norm of about 2e-06; no type attains it",
			"expected: only rounding is left after about 430,000 sweeps"},
		{512, "float64", dirichlet, 1e-8, 1e9, "",
			"expected: the tolerance is met after about 640,000 sweeps"},
		{512, "float64", dirichlet, 0, 1e9, "", ""},
		{64, "float64", configs.Problem{Preset: "dirichlet", Top: "0"}, 1e-8, 1000, "", ""},
	} {
		o := outlookOf(t, c.n, c.n, c.dtype, c.problem)
		what, do := o.Warning(c.tolerance, 0)
		if what != "" {
			what += "; " + do
		}
		if what != c.warning {
			t.Errorf("%d, %s, %g: warning %q, want %q", c.n, c.dtype, c.tolerance, what, c.warning)
		}
		if got := o.Expected(c.tolerance, c.maxIterations); got != c.want {
			t.Errorf("%d, %s, %g: %q, want %q", c.n, c.dtype, c.tolerance, got, c.want)
		}
	}
}

// The hint and the forecast of multigrid name cycles and their time, also with fixed points inside, where the sweeps
// have no estimate.
func TestMultigridWords(t *testing.T) {
	plate := configs.Problem{Preset: "dirichlet", Fixed: "abs(x-0.5) < 0.1 && abs(y-0.5) < 0.1"}
	for _, c := range []struct {
		n             int
		dtype         string
		problem       configs.Problem
		tolerance     float64
		maxIterations int
		hint, want    string
	}{
		{512, "float32", dirichlet, 1e-8, 1000, "solver.method multigrid: the tolerance is met " +
			"within about 9 cycles, each in about 4ms",
			"expected: the tolerance is met within about 9 cycles, each in about 4ms"},
		{512, "float64", dirichlet, 1e-8, 5,
			"solver.method multigrid: the tolerance is met within about 9 cycles, each in about 4ms",
			"expected: the end is at the 5 cycles of solver.max_iterations, or the tolerance is met before; without " +
				"that key it is met within about 9 cycles, each in about 4ms"},
		{64, "float64", dirichlet, 1e-3, 1000, "",
			"expected: the tolerance is met within about 4 cycles, each in about 4ms"},
		{512, "float64", dirichlet, 0, 1000, "", ""},
		{512, "float64", dirichlet, 1e-13, 1000, "",
			"expected: the tolerance is met within about 14 cycles, each in about 4ms"},
		{512, "float32", plate, 1e-8, 10000, "solver.method multigrid: 1e-8 of the first norm is " +
			"met within about 16 cycles, each in about 4ms", "expected: a cycle takes about 4ms"},
		{512, "float64", plate, 1e-8, 9999, "",
			"expected: a cycle takes about 4ms"},
		{512, "float64", plate, 0, 10000, "", ""},
	} {
		o := outlookOf(t, c.n, c.n, c.dtype, c.problem)
		if got := o.MultigridHint(c.tolerance, c.maxIterations, 4*time.Millisecond); got != c.hint {
			t.Errorf("%d, %s, %g: hint %q, want %q", c.n, c.dtype, c.tolerance, got, c.hint)
		}
		if got := o.ExpectedCycles(c.tolerance, 0, c.maxIterations, 4*time.Millisecond); got != c.want {
			t.Errorf("%d, %s, %g: %q, want %q", c.n, c.dtype, c.tolerance, got, c.want)
		}
	}
}

// A tolerance relative to the first norm needs no estimate of that.
func TestRelativeForecast(t *testing.T) {
	pinned := configs.Problem{Preset: "dirichlet", Fixed: "ix == 5 and iy == 7"}
	for want, p := range map[string]configs.Problem{"6": dirichlet, "12": pinned} {
		want = "expected: the tolerance is met within about " + want + " cycles, each in about 4ms"
		o := outlookOf(t, 64, 64, "float64", p)
		if got := o.ExpectedCycles(0, 1e-6, 1000, 4*time.Millisecond); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A tolerance that cycles do not meet is a warning.
func TestCycleWarning(t *testing.T) {
	for _, c := range []struct {
		n                   int
		problem             configs.Problem
		tolerance, relative float64
		want                string
	}{
		{512, dirichlet, 1e-20, 0, "solver.tolerance 1e-20 is below what float64 attains on this mesh: " +
			"a norm of about 1e-13; a larger one is met"},
		{512, gtc2019, 0, 1e-20, "solver.relative_tolerance 1e-20 is below what float64 attains on this mesh: " +
			"a norm of about 8e-14; a larger one is met"},
		{512, dirichlet, 1e-12, 0, "; "},
		{512, dirichlet, 1e-12, 1e-20, "; "},
		{512, dirichlet, 0, 0, "; "},
	} {
		o := outlookOf(t, c.n, c.n, "float64", c.problem)
		if what, do := o.CycleWarning(c.tolerance, c.relative); what+"; "+do != c.want {
			t.Errorf("%d, %g, %g: %q, want %q", c.n, c.tolerance, c.relative, what+"; "+do, c.want)
		}
	}
}

// A course knows the end of the run from its hundredth norm on, also after a restart from a checkpoint.
func TestCourse(t *testing.T) {
	o := outlookOf(t, 300, 300, "float64", gtc2019)
	for _, first := range []int{0, 40000} {
		c := NewCourse(o, 1e-8, 1e9)
		for k := first; k < first+200; k++ {
			c.Add(k, o.norm(float64(k)))
		}
		if end, reason, ok := c.End(); !ok || reason != solver.Converged || math.Abs(float64(end)/94939-1) > 0.05 {
			t.Errorf("from %d: %d, %s, %v; want converged after about 94939", first, end, reason, ok)
		}
	}

	c := NewCourse(o, 1e-8, 5000) // which the run reaches first
	c.Add(0, 1)
	if end, reason, ok := c.End(); end != 5000 || reason != solver.MaxIterations || !ok {
		t.Errorf("%d, %s, %v; want 5000, max_iterations", end, reason, ok)
	}

	c = NewCourse(outlookOf(t, 64, 64, "float32", dirichlet), 1e-20, 1e9)
	c.Add(20000, 1e-9)
	if end, reason, ok := c.End(); reason != solver.Stalled || ok {
		t.Errorf("%d, %s, %v; want stalled, at an unknown sweep", end, reason, ok)
	}

	// The tolerance is met while many modes fall at once, and the norm follows a power of the number of sweeps.
	c = NewCourse(outlookOf(t, 16384, 16384, "float32", gtc2019), 1e-3, 1e9)
	for k := range 2000 {
		c.Add(k, math.Pow(float64(k+1), -0.75))
	}
	if end, reason, ok := c.End(); !ok || reason != solver.Converged || end < 9000 || end > 11000 {
		t.Errorf("%d, %s, %v; want converged after about 10000", end, reason, ok)
	}
}

func TestOutlookHeedsItsContext(t *testing.T) {
	cfg := configs.Default()
	prob, err := problem.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	const want = "sample the problem: interrupted"
	if _, err := New(ctx, prob); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
