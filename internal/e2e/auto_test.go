package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
)

// A file that says nothing but its problem is solved by multigrid, with the same field for any number of ranks and with
// keys that change no field. Everything that describes the run names the method and why it was taken.
func TestNaturalFile(t *testing.T) {
	const file = "grid: {nx: 65, ny: 65}\nproblem: {left: 0, right: 0, top: 0, bottom: 0, source: 1}\n"
	const label = "Poisson equation, 65 x 65 float64, multigrid (auto: any problem but gtc2019)"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.yaml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	launch := func(args ...string) outcome {
		out := runNatural(t, dir, "launcher", append(args, "--config", "run.yaml")...)
		if out.code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, out.code, out.stderr)
		}
		return out
	}
	launch("-np", "1").fails(t, 0, label+"\n")
	want, r := answerIn(t, filepath.Join(dir, "out"))
	if want.reason != "converged" || math.Abs(r.Results.Max.Value-0.0737) > 1e-4 {
		t.Errorf("%s, %+v, want a maximum of 0.0737", want.reason, r.Results)
	}
	if got := methodOf(t, filepath.Join(dir, "out")); got != "multigrid: any problem but gtc2019" {
		t.Errorf("the report says %q", got)
	}
	for _, args := range [][]string{
		{"-np", "3"}, set("problem.preset=", "solver.max_iterations=50"), set("output.every=2"), set("grid.height=1"),
		set("checkpoint.every=2", "checkpoint.dir=saved"), set("grid.dtype=float32"),
		set("solver.relative_tolerance=1e-8"), set("solver.method=multigrid"),
	} {
		launch(append([]string{"-np", "2"}, args...)...)
		got, _ := answerIn(t, filepath.Join(dir, "out"))
		same(t, got, want, args)
	}
	for _, word := range []string{"--dry-run", "doctor"} {
		if out := launch(word, "-np", "3"); !strings.Contains(strings.Join(strings.Fields(out.stdout), " "), label) {
			t.Errorf("%s: no %q in\n%s", word, label, out.stdout)
		}
	}
}

// methodOf returns the method that a report names, with the reason of auto.
func methodOf(t *testing.T, dir string) string {
	t.Helper()
	var r struct {
		Method string `json:"method"`
		Reason string `json:"method_reason"`
		Config struct{ Solver struct{ Method string } }
	}
	if err := json.Unmarshal([]byte(readText(t, dir, "report.json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Config.Solver.Method != r.Method {
		t.Errorf("the configuration of the report has method %q, the report %q", r.Config.Solver.Method, r.Method)
	}
	return r.Method + ": " + r.Reason
}

// A run that leaves method and type open goes on by those of its checkpoint, whatever auto would take, also with a key
// that its own method lacks.
func TestAutoGoesOn(t *testing.T) {
	t.Parallel()
	mesh := []string{"grid.nx=66", "grid.ny=66", "problem.left=1", "output.picture=", "solver.tolerance=0"}
	for _, c := range []struct {
		method, dtype, preset, more string // more is a key of the second run alone
		first, sweeps               int
	}{
		{"jacobi", "float32", "", "halo.depth=4", 20, 1000},
		{"multigrid", "float64", "gtc2019", "solver.max_iterations=4", 2, 4},
	} {
		saved, keys := filepath.Join(t.TempDir(), "checkpoints"), with(mesh, "problem.preset="+c.preset)
		mustRun(t, t.TempDir(), "launcher", onRanks(2, with(keys, "solver.method="+c.method, "grid.dtype="+c.dtype,
			"checkpoint.dir="+saved, "checkpoint.every=1h", fmt.Sprintf("solver.max_iterations=%d", c.first))...)...)
		keys = append(keys, c.more)
		for program, args := range map[string][]string{
			"launcher":    append(onRanks(2, keys...), "--resume", saved),
			"jacobi-rank": set(with(keys, "run.ranks=1", "checkpoint.resume="+saved)...),
		} {
			dir := t.TempDir()
			out := runNatural(t, dir, program, args...)
			out.fails(t, 0, c.method+" (auto: that of the checkpoint)")
			r := readReport(t, filepath.Join(dir, "out"))
			if r.ResumedAfter != c.first || r.Sweeps != c.sweeps ||
				!strings.Contains(out.stdout, "66 x 66, "+c.dtype) {
				t.Errorf("%s: %d sweeps after %d, want %d after %d in %s\n%s", program, r.Sweeps, r.ResumedAfter,
					c.sweeps, c.first, c.dtype, out.stdout)
			}
			if got := methodOf(t, filepath.Join(dir, "out")); got != c.method+": that of the checkpoint" {
				t.Errorf("%s went on by %q", program, got)
			}
		}
	}
}

// weighted are runs of all methods, with weights of their ranks. The rows of a stripe change nothing in the answer.
var weighted = map[string]struct {
	keys    []string
	ny      int
	weights [][]float64
}{
	"jacobi": {[]string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0.31", "solver.max_iterations=400"}, 131,
		[][]float64{{2, 1}, {1, 9}, {1, 3, 1}, {5, 1, 1, 1, 2}}},
	"multigrid": {[]string{"solver.method=multigrid", "grid.dtype=float64", "problem.preset=dirichlet",
		"problem.top=x", "grid.nx=257", "grid.ny=514", "solver.relative_tolerance=1e-8",
		"solver.tolerance=0"}, 514,
		[][]float64{{1, 9}, {4, 1, 2}}},
	"fixed points": {[]string{"solver.method=multigrid", "grid.dtype=float64", "problem.preset=dirichlet",
		"problem.top=x", "problem.fixed=abs(x-0.5)+abs(y-0.5) < 0.2", "grid.nx=257", "grid.ny=258",
		"solver.relative_tolerance=1e-8", "solver.tolerance=0"}, 258,
		[][]float64{{9, 1, 3}}},
}

// Ranks with unequal stripes give the answer of one rank, for all methods, over all transports and with several depths.
func TestBalanceKeepsTheBits(t *testing.T) {
	t.Parallel()
	for name, c := range weighted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := append([]string{"output.picture=", "device.threads=1"}, c.keys...)
			want, _ := solve(t, onRanks(1, keys...)...)
			for i, weights := range c.weights {
				depth := []string{"auto", "1", "5"}[i%3]
				if name != "jacobi" {
					depth = "auto"
				}
				text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(weights)), ","), "[]")
				args := onRanks(len(weights), with(keys, "halo.transport="+[]string{"direct", "nats", "p2p"}[i%3],
					"halo.depth="+depth, "run.balance="+text)...)
				got, r := solve(t, args...)
				same(t, got, want, args)
				if r.Balance != "run.balance "+text {
					t.Errorf("%v: the report says %q", args, r.Balance)
				}
				stripes, err := solver.PartitionBy(solver.Stripe{Lo: 1, Hi: c.ny - 1}, weights, len(weights), r.Depth)
				if err != nil {
					t.Fatal(err)
				}
				for k, rank := range r.Ranks {
					if want := [2]int{stripes[k].Lo, stripes[k].Hi}; rank.Stripe != want {
						t.Errorf("weights %v: rank %d has rows %v, want %v", weights, k, rank.Stripe, want)
					}
				}
			}
		})
	}
}

// Ranks on CPUs whose rows go through a server measure it and how fast they sweep. Their halos are as deep as they
// prefer or twice, four times and so on as deep; summary and report say why, and the answer stays. Ranks that share
// memory measure nothing.
func TestDepthOfCPUsFollowsFromTheNetwork(t *testing.T) {
	args := onRanks(3, "grid.nx=64", "grid.ny=600", "solver.max_iterations=100")
	want, r := solve(t, args...)
	if r.Depth != 12 || r.DepthReason != "" {
		t.Errorf("halo depth %d (%s), want 12 of ranks that share memory", r.Depth, r.DepthReason)
	}
	got, r := solve(t, append(args, "--set", "halo.transport=nats")...)
	same(t, got, want)
	if !regexp.MustCompile(`^auto: \S+s from rank [0-2] to [0-2] over NATS, \S+s with 256 KiB; `+
		`a rank sweeps \d+\.\d GLUP/s$`).MatchString(r.DepthReason) ||
		!slices.Contains([]int{12, 24, 48, 96, 192}, r.Depth) {
		t.Errorf("halo depth %d (%s)", r.Depth, r.DepthReason)
	}
}
