package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"jacobi/solver"
)

// weighted are runs of all methods, with weights of their ranks. The rows of a stripe change nothing in the answer.
var weighted = map[string]struct {
	keys    []string
	ny      int
	weights [][]float64
}{
	"jacobi": {[]string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0.31", "solver.max_iterations=400"}, 131,
		[][]float64{{2, 1}, {1, 9}, {1, 3, 1}, {5, 1, 1, 1, 2}}},
	"multigrid": {[]string{"solver.method=multigrid", "grid.dtype=float64", "problem.preset=dirichlet",
		"problem.top=x", "grid.nx=257", "grid.ny=514", "solver.start=full", "solver.relative_tolerance=1e-8",
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
			want, _ := solve(t, append(set(keys...), "-np", "1")...)
			for i, weights := range c.weights {
				np := len(weights)
				for j, transport := range []string{"p2p", "nats", "direct"} {
					depth := []string{"auto", "1", "5"}[(i+j)%3]
					if name != "jacobi" {
						depth = "auto"
					}
					text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(weights)), ","), "[]")
					args := append(keys, "halo.transport="+transport, "halo.depth="+depth, "run.balance="+text)
					got, r := solve(t, append(set(args...), "-np", strconv.Itoa(np))...)
					if got != want {
						t.Errorf("%v: %d sweeps (%s), field %s; want %d (%s), %s", args, got.sweeps, got.reason,
							got.sha, want.sweeps, want.reason, want.sha)
					}
					checkStripes(t, r, c.ny, weights)
					if r.Balance != "run.balance "+text {
						t.Errorf("%v: the report says %q", args, r.Balance)
					}
				}
			}
		})
	}
}

// checkStripes checks that the stripes of a report follow from weights.
func checkStripes(t *testing.T, r report, ny int, weights []float64) {
	t.Helper()
	stripes, err := solver.PartitionBy(solver.Stripe{Lo: 1, Hi: ny - 1}, weights, len(weights), r.Depth)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range r.Ranks {
		if want := [2]int{stripes[i].Lo, stripes[i].Hi}; k.Stripe != want {
			t.Errorf("weights %v: rank %d has rows %v, want %v", weights, i, k.Stripe, want)
		}
	}
}

// A checkpoint of unequal stripes goes on with other weights, with equal stripes, and by measured speeds.
func TestResumeWithAnotherBalance(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	want, _ := solve(t, append(set(long...), "-np", "1")...)
	if got := saved(t, dir, "3", "run.balance=4,1,2"); got != want {
		t.Errorf("with checkpoints: field %s, want %s", got.sha, want.sha)
	}
	for _, c := range []struct{ np, balance string }{{"2", "1,5"}, {"3", "equal"}, {"3", "auto"}} {
		args := append(set(append([]string{"run.balance=" + c.balance}, long...)...), "-np", c.np, "--resume", dir)
		got, r := solve(t, args...)
		if got != want || r.ResumedAfter < 500 {
			t.Errorf("np %s, balance %s, resumed after %d sweeps: %d sweeps, field %s; want %d, %s", c.np, c.balance,
				r.ResumedAfter, got.sweeps, got.sha, want.sweeps, want.sha)
		}
	}
}

// With run.balance auto the report says how fast ranks are, whatever that is here, and the answer stays.
func TestBalanceByMeasuredSpeeds(t *testing.T) {
	keys := []string{"grid.nx=200", "grid.ny=302", "solver.max_iterations=60", "output.picture=", "device.threads=1"}
	want, r := solve(t, append(set(keys...), "-np", "3")...)
	if r.Balance != "" {
		t.Errorf("equal stripes: the report says %q", r.Balance)
	}
	got, r := solve(t, append(set(append(keys, "run.balance=auto")...), "-np", "3")...)
	why := regexp.MustCompile(`^run\.balance auto: (` +
		`equal, since the slowest rank has \d+% of the fastest one's speed|` +
		`rank [0-2] sweeps \d+\.\d\d GLUP/s, the slowest, rank [0-2] \d+\.\d\d, the fastest)$`)
	if got != want || !why.MatchString(r.Balance) {
		t.Errorf("balance %q, field %s, want %s", r.Balance, got.sha, want.sha)
	}
}
