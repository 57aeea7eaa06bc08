package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jacobi/internal/compute/results"
)

// conducting is a problem with two floating regions, and the matrix of all three.
var conducting = cycling("grid.nx=98", "grid.ny=98", "problem.preset=", "problem.right=neumann(0)",
	"problem.coefficient=x+y < 0.9 ? 1 : 7", "output.matrix=true", "solver.tolerance=0",
	"solver.relative_tolerance=1e-9",
	"problem.regions=a value=1 where=hypot(x-0.3, y-0.3) < 0.11; b value=floating where=abs(x-0.7) < 0.1 and "+
		"abs(y-0.4) < 0.05; c value=floating(-0.5) where=hypot(x-0.4, y-0.75) < 0.08")

// Values of floating regions, the matrix and the field have the same digits for any number of ranks, transport and
// kernel, and after a restart. A checkpoint belongs to the problem whose charges it has.
func TestFloatingRegions(t *testing.T) {
	t.Parallel()
	want, first := solve(t, onRanks(1, conducting...)...)
	if r := first.Results; len(r.Regions) != 3 || r.Matrix == nil || len(r.Matrix.Maxwell) != 3 {
		t.Fatalf("%+v", r)
	}
	for np, more := range map[int][]string{1: {"device.kernel=portable"}, 2: {"halo.transport=nats"}, 3: nil, 8: nil} {
		got, r := solve(t, onRanks(np, with(conducting, more...)...)...)
		if same(t, got, want, np); !reflect.DeepEqual(r.Results, first.Results) {
			t.Errorf("%d ranks: %+v, want %+v", np, r.Results, first.Results)
		}
	}
	dir := filepath.Join(t.TempDir(), "saved")
	solve(t, onRanks(3, with(conducting, "checkpoint.every=2", "checkpoint.dir="+dir, "solver.max_iterations=3")...)...)
	got, r := solve(t, append(onRanks(2, conducting...), "--resume", dir)...)
	if got.sha != want.sha || !reflect.DeepEqual(r.Results.Regions, first.Results.Regions) {
		t.Errorf("resumed: %+v, %+v; want %+v", got, r.Results.Regions, want)
	}
	other := strings.ReplaceAll(strings.Join(conducting, "\n"), "floating(-0.5)", "floating(0.5)")
	out := run(t, t.TempDir(), "launcher", append(onRanks(2, strings.Split(other, "\n")...), "--resume", dir)...)
	if out.code != 1 || !strings.Contains(out.stderr, "problem.regions") {
		t.Errorf("another charge: exit code %d\n%s", out.code, out.stderr)
	}
	out = run(t, t.TempDir(), "jacobi-rank", set(conducting...)...)
	if out.code != 0 || !strings.Contains(out.stdout, " (floating), ") || !strings.Contains(out.stdout, "Matrix  ") {
		t.Errorf("alone: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// The matrix of a problem with a region between points is missing, and the rest is there. Regions whose values nothing
// determines are refused.
func TestMatrixIsMissing(t *testing.T) {
	t.Parallel()
	keys := onRanks(2, with(conducting, "problem.regions=a value=1 where=x < 0.2; b value=1 where=hypot(x-0.5, "+
		"y-0.5) < 1e-3")...)
	out := run(t, t.TempDir(), "launcher", keys...)
	if out.code != 1 || !strings.Contains(out.stdout, "MISSING        output.matrix: no point of the mesh lies in b") ||
		!strings.Contains(out.stdout, "history.csv") {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	keys = onRanks(3, with(conducting, "problem.coefficient=abs(x-0.7) > 0.15 ? 1 : 0")...)
	out = run(t, t.TempDir(), "launcher", keys...)
	if out.code != 1 || !strings.Contains(out.stderr, "problem.regions: nothing determines the value of b") {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// Each run of a study and each request has the bits of the run alone, whether its ranks know the fluxes of single
// regions or not.
func TestStudyOfACharge(t *testing.T) {
	t.Parallel()
	const runs = 5
	var shas, documents []string
	for i := range runs {
		regions := fmt.Sprintf("a value=%d where=x < 0.2; b value=floating(%d) where=abs(x-0.7) < 0.1 and "+
			"abs(y-0.5) < 0.1", 1+i/4, i%3)
		alone, _ := solve(t, onRanks(1, with(small, "solver.method=multigrid", "problem.regions="+regions)...)...)
		shas = append(shas, alone.sha)
		documents = append(documents, fmt.Sprintf(`{"problem.regions": %q}`, regions))
	}
	for _, np := range []string{"1", "3"} {
		dir := t.TempDir()
		writeRuns(t, dir, documents...)
		mustRun(t, dir, "launcher", studyOf(with(small, "solver.method=multigrid"), "-np", np, "--runs", "runs.jsonl",
			"--hash")...)
		for i, l := range studyLines(t, dir) {
			var r results.Results
			if err := json.Unmarshal(l.Results, &r); err != nil || l.SHA256 != shas[i] || !r.Regions[1].Floating {
				t.Errorf("%s ranks: run %d: %+v, want %s (%v)", np, i+1, l, shas[i], err)
			}
		}
	}
}

// A request that several ranks do together has the bits of the run alone, too.
func TestServeACharge(t *testing.T) {
	t.Parallel()
	const disc = "hypot(x-0.5, y-0.5) < 0.2"
	keys := cycling("grid.nx=601", "grid.ny=601", "problem.preset=dirichlet")
	c := serve(t, t.TempDir(), onRanks(2, keys...)...)
	for _, charge := range []int{0, 3, 3} {
		c.ask(`{"id": 1, "hash": true, "keys": {"problem.regions": {"a": {"where": %q, "value": "floating(%d)"}}}}`,
			disc, charge)
		end, r := c.until("end")
		want, _ := solve(t, onRanks(1, with(keys, fmt.Sprintf("problem.regions=a value=floating(%d) where=%s", charge,
			disc))...)...)
		if end.End.Error != "" || r.FieldHash != want.sha {
			t.Errorf("charge %d: %s, want %s (%s)", charge, r.FieldHash, want.sha, end.End.Error)
		}
	}
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	c.exits(0)
}
