package e2e

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// looseKeys are keys of a problem whose sides are insulated, in a material with a hole, that lets in more than it lets
// out.
var looseKeys = []string{"problem.preset=dirichlet", "grid.dtype=float64", "solver.method=multigrid",
	"solver.relative_tolerance=1e-8", "grid.nx=130", "grid.ny=97", "problem.left=neumann(0)", "problem.right=flux(0.3)",
	"problem.top=neumann(-x)", "problem.bottom=neumann(0)", "problem.source=sin(7*x)*y", "solver.mesh_error=off",
	"problem.coefficient=hypot(x-0.5, y-0.4) < 0.2 ? 0 : 1 + x", "output.picture="}

// A problem without anything that fixes its field has the same bits for any number of ranks, and after a restart, also
// where fields of the way are written, which have the mean 0, too. It warns of what it takes off its source.
func TestLooseProblems(t *testing.T) {
	t.Parallel()
	want, first := solve(t, onRanks(1, looseKeys...)...)
	const taken = "taken off the source at each point"
	for _, np := range []int{2, 3, 8} {
		if got, r := solve(t, onRanks(np, looseKeys...)...); got != want || *r.Results.Mean != *first.Results.Mean {
			t.Errorf("%d ranks: %+v and a mean of %g; 1 rank has %+v and %g", np, got, *r.Results.Mean, want,
				*first.Results.Mean)
		}
	}
	dir := t.TempDir()
	saved := with(looseKeys, "checkpoint.every=2", "checkpoint.dir=saved")
	three := with(saved, "solver.max_iterations=3", "solver.relative_tolerance=0")
	out := mustRun(t, dir, "launcher", onRanks(2, three...)...)
	if n := strings.Count(out.stderr, taken); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, out.stderr)
	}
	mustRun(t, dir, "launcher", append(onRanks(3, with(saved, "output.every=1")...), "--restart")...)
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldHash != first.FieldHash || r.ResumedAfter != 3 {
		t.Errorf("after a restart from %d cycles: %s, want %s", r.ResumedAfter, r.FieldHash, first.FieldHash)
	}
	if off := setupIn(t, dir).TakenOff; off == nil || !(math.Abs(off.Relative) > 0.1) {
		t.Errorf("%+v is taken off", off)
	}
	sum, most := 0.0, 0.0
	for i, v := range readField(t, filepath.Join(dir, "out", "field-000000004.npy"), 130, 97) {
		w := 1.0
		if x := i % 130; x == 0 || x == 129 {
			w /= 2
		}
		if y := i / 130; y == 0 || y == 96 {
			w /= 2
		}
		sum, most = sum+w*v, max(most, math.Abs(v))
	}
	if !(math.Abs(sum) < 1e-10*most) {
		t.Errorf("the field after 4 cycles adds up to %g, its largest value is %g", sum, most)
	}
	run(t, dir, "launcher", onRanks(2, with(looseKeys, "solver.method=jacobi")...)...).fails(t, 1,
		`solver.method "jacobi": no side has values`)
	for _, ranks := range []string{"1", "3"} {
		dir := t.TempDir()
		writeRuns(t, dir, `{"problem.source": "sin(7*x)*y"}`)
		out := mustRun(t, dir, "launcher", studyOf(with(looseKeys, "output.field=", "output.history="), "-np", ranks,
			"--runs", "runs.jsonl", "--hash")...)
		if n := strings.Count(out.stderr, taken); n != 1 {
			t.Errorf("%d warnings of a study, want 1:\n%s", n, out.stderr)
		}
		if l := studyLines(t, dir); len(l) != 1 || l[0].SHA256 != first.FieldHash {
			t.Errorf("the study has %+v, want %s", l, first.FieldHash)
		}
	}
}
