package configs

import "testing"

// Load takes the method that docs/methods.md says for each combination of keys, and says why.
func TestAuto(t *testing.T) {
	solution := []string{"problem.preset=dirichlet", "grid.dtype=float64", "grid.nx=128", "grid.ny=128"}
	with := func(more ...string) []string { return append(solution[:len(solution):len(solution)], more...) }
	for _, c := range []struct {
		set  []string
		want string
	}{
		{nil, "jacobi (auto: problem.preset gtc2019)"},
		{[]string{"solver.method=auto", "grid.dtype=float64"}, "jacobi (auto: problem.preset gtc2019)"},
		{[]string{"solver.relative_tolerance=1e-8"}, "jacobi (auto: grid.dtype float32)"},
		{[]string{"solver.relative_tolerance=1e-8", "grid.dtype=float64"},
			"multigrid (auto: solver.relative_tolerance)"},
		{[]string{"problem.preset=dirichlet"}, "jacobi (auto: grid.dtype float32)"},
		{solution, "multigrid (auto: the tolerance takes more than 1000 sweeps)"},
		{with("solver.method=auto"), "multigrid (auto: the tolerance takes more than 1000 sweeps)"},
		{with("solver.method=jacobi"), "jacobi"},
		{with("solver.method=multigrid"), "multigrid"},
		{with("solver.method=chebyshev"), "chebyshev"},
		{with("solver.max_iterations=1000"), "jacobi (auto: solver.max_iterations is given)"},
		{with("halo.depth=4"), "jacobi (auto: halo.depth is given)"},
		{with("halo.depth=auto"), "multigrid (auto: the tolerance takes more than 1000 sweeps)"},
		{with("checkpoint.every=100"), "jacobi (auto: checkpoint.every counts sweeps)"},
		{with("checkpoint.every=5 cycles"), "multigrid (auto: checkpoint.every counts cycles)"},
		{with("checkpoint.every=10m"), "multigrid (auto: the tolerance takes more than 1000 sweeps)"},
		{with("solver.tolerance=0"), "jacobi (auto: no tolerance)"},
		{with("solver.tolerance=0", "solver.start=full"), "multigrid (auto: solver.start full)"},
		{with("solver.max_iterations=9", "solver.acceleration=cg"), "multigrid (auto: solver.acceleration cg)"},
		{with("run.ranks=8"), "multigrid (auto: the tolerance takes more than 1000 sweeps)"},
		{with("run.ranks=9", "solver.start=full"),
			"jacobi (auto: run.ranks 9, and with multigrid grid.ny 128 allows at most 8)"},
		{with("grid.nx=9", "grid.ny=9", "run.ranks=1"), "jacobi (auto: the tolerance takes at most 1000 sweeps)"},
		{with("problem.screening=1e6"), "jacobi (auto: the tolerance takes at most 1000 sweeps)"},
		{with("grid.height=1e6"), "multigrid (auto: the tolerance takes more than 1000 sweeps)"},
		{with("problem.left=neumann(0)", "problem.right=neumann(0)", "grid.ny=12", "run.ranks=1"),
			"jacobi (auto: the tolerance takes at most 1000 sweeps)"},
	} {
		got, err := Load(Options{Set: c.set})
		if err != nil || got.Solver.MethodText() != c.want {
			t.Errorf("%q: %s, %v; want %s", c.set, got.Solver.MethodText(), err, c.want)
		}
		// The ranks of a launcher get the method and the reason.
		again, err := Load(Options{Environ: Environ(got)})
		if err != nil || again != got || Hash(again) != Hash(got) {
			t.Errorf("%q: through the environment %+v, %v", c.set, again.Solver, err)
		}
	}
}

// A file that names the method, and one that leaves it open, have the same hash if the method is the same.
func TestAutoHash(t *testing.T) {
	file := "grid: {dtype: float64}\nproblem: {preset: dirichlet}\n"
	open := mustMerge(t, "run.yaml", file, Options{})
	named := mustMerge(t, "run.yaml", file+"solver: {method: multigrid}\n", Options{})
	if Hash(open) != Hash(named) {
		t.Errorf("%+v and %+v have other hashes", open, named)
	}
	reset := mustMerge(t, "run.yaml", file+"solver: {method: chebyshev}\n",
		Options{Set: []string{"solver.method=auto"}})
	if reset != open {
		t.Errorf("%+v, want %+v", reset, open)
	}
}

// The estimate is close to the sweeps that a run needed to a norm of 1e-8 (see internal/outlook).
func TestSweepsTo(t *testing.T) {
	got, err := Load(Options{Set: []string{"problem.preset=dirichlet", "grid.nx=512", "grid.ny=512",
		"grid.dtype=float64"}})
	if n := sweepsTo(got); err != nil || n < 0.9*644721 || n > 1.1*644721 {
		t.Errorf("%v, want about 644721; %v", n, err)
	}
}

// Prefer changes a method that Load took, and no other.
func TestPrefer(t *testing.T) {
	open, err := Load(Options{Set: []string{"checkpoint.every=7"}})
	if err != nil {
		t.Fatal(err)
	}
	got := open.Prefer(Multigrid, "that of the checkpoint")
	if text := got.Solver.MethodText(); text != "multigrid (auto: that of the checkpoint)" {
		t.Errorf("got %s", text)
	}
	if text := got.Checkpoint.Every.String(); text != "7 cycles" {
		t.Errorf("checkpoint.every %s, want 7 cycles", text)
	}
	named, err := Load(Options{Set: []string{"solver.method=jacobi"}})
	if err != nil || named.Prefer(Multigrid, "x") != named {
		t.Errorf("%+v, %v", named.Prefer(Multigrid, "x").Solver, err)
	}
}

// A method that auto took and a key that it lacks are refused with the reason of the choice.
func TestAutoRefuses(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"solver.relative_tolerance=1e-8"}, "solver.relative_tolerance 1e-08: solver.method chebyshev and " +
			"multigrid have it, jacobi (auto: grid.dtype float32) has not"},
		{[]string{"solver.start=full"}, `solver.start "full": solver.method multigrid has it, jacobi (auto: ` +
			`grid.dtype float32) has not`},
		{[]string{"solver.acceleration=cg"}, `solver.acceleration "cg": solver.method multigrid has it, jacobi ` +
			`(auto: grid.dtype float32) has not`},
		{[]string{"solver.start=full", "grid.dtype=float64", "halo.depth=2"}, "halo.depth 2: solver.method multigrid " +
			"(auto: solver.start full) has a depth of its own; auto is allowed"},
		{[]string{"checkpoint.every=5 cycles", "checkpoint.dir=x"}, `checkpoint.every "5 cycles": solver.method ` +
			`multigrid has cycles, jacobi (auto: grid.dtype float32) has not`},
	} {
		got, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(got); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
