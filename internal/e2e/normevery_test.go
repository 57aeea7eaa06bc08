package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// everyProblems are problems for norms of some sweeps, with and without terms.
var everyProblems = map[string][]string{
	"plain":     {"grid.nx=97", "grid.ny=131"},
	"fixed":     {"grid.nx=130", "grid.ny=141", "problem.preset=dirichlet", "problem.fixed=hypot(x-0.4, y-0.5) < 0.2"},
	"source":    {"grid.nx=97", "grid.ny=131", "problem.preset=dirichlet", "problem.source=sin(9*x)*y"},
	"screening": {"grid.nx=70", "grid.ny=131", "problem.preset=dirichlet", "problem.left=y", "problem.screening=40"},
	"all terms": {"grid.nx=131", "grid.ny=139", "problem.preset=dirichlet", "problem.top=neumann(1)", "grid.width=2",
		"problem.source=1", "problem.screening=3", "problem.fixed=(ix + 3*iy) % 11 == 0"},
}

const everySweeps = 47 // most norms of every 7th sweep lie within passes of 5 sweeps

// everyCases are values of solver.norm_every, with depths.
var everyCases = []struct{ every, depth int }{{16, 16}, {7, 5}, {3, 1}}

// With norms of some sweeps, the field is that of a run with all norms, and the history has the lines of exactly those
// sweeps, whatever carries halos and norms. Each problem runs each cadence alone and with two or three ranks, so that
// the problems together have every cadence with every number of ranks and transport. That kernels compute the norms of
// any sweeps, and no others, is proven without processes (backendtest.NormCases). TCP is tested with hosts.
func TestNormsOfSomeSweeps(t *testing.T) {
	t.Parallel()
	shift := 0
	for _, name := range slices.Sorted(maps.Keys(everyProblems)) {
		for _, dtype := range []string{"float32", "float64"} {
			own := shift
			shift++
			t.Run(name+"/"+dtype, func(t *testing.T) {
				t.Parallel()
				base := everyBase(append([]string{"grid.dtype=" + dtype}, everyProblems[name]...))
				all := withAllNorms(t, base)
				for i, c := range everyCases {
					transport := []string{"nats", "p2p"}[(own/2+i)%2]
					for _, np := range []int{1, 2 + (own+i)%2} {
						got, _ := solve(t, append(set(append(base, "halo.transport="+transport,
							fmt.Sprint("halo.depth=", c.depth), fmt.Sprint("solver.norm_every=", c.every))...),
							"-np", strconv.Itoa(np))...)
						checkEvery(t, fmt.Sprintf("np %d, %s, depth %d", np, transport, c.depth), got, all, c.every)
					}
				}
			})
		}
	}
}

// The same between two and three hosts, over TCP and over NATS, with and without terms.
func TestNormsOfSomeSweepsOverHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for i, name := range []string{"plain", "all terms"} {
		base := everyBase(everyProblems[name])
		all := withAllNorms(t, base)
		for j, hosts := range []string{"a:1,b:1", "a:1,b:1,c:1"} {
			transport := []string{"direct", "nats"}[(i+j)%2]
			for _, e := range everyCases {
				dir := t.TempDir()
				what := fmt.Sprintf("%s, hosts %s, %s, depth %d", name, hosts, transport, e.depth)
				out := c.run(dir, append(append(set(append(base, "halo.transport="+transport,
					fmt.Sprint("halo.depth=", e.depth), fmt.Sprint("solver.norm_every=", e.every))...),
					c.ssh("user")...), "--host", hosts, "-np", strconv.Itoa(strings.Count(hosts, ":")))...)
				if out.code != 0 {
					t.Fatalf("%s: exit code %d\n%s%s", what, out.code, out.stdout, out.stderr)
				}
				r := readReport(t, filepath.Join(dir, "out"))
				history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
				if err != nil {
					t.Fatal(err)
				}
				checkEvery(t, what, answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}, all, e.every)
				for side, link := range r.Ranks[0].Transports {
					if link.Transport != transport {
						t.Errorf("%s: rank 0, %s: %s (%s)", what, side, link.Transport, link.Why)
					}
				}
			}
		}
	}
}

// everyBase returns the settings of a run of everySweeps sweeps.
func everyBase(problem []string) []string {
	return slices.Clip(append([]string{"solver.tolerance=0", "output.picture=", "output.field=",
		fmt.Sprint("solver.max_iterations=", everySweeps)}, problem...))
}

// withAllNorms returns the answer of one rank with the norm of every sweep.
func withAllNorms(t *testing.T, base []string) answer {
	t.Helper()
	all, _ := solve(t, append(set(base...), "-np", "1")...)
	if n := strings.Count(all.history, "\n"); n != 1+everySweeps || all.sweeps != everySweeps {
		t.Fatalf("%d lines after %d sweeps, want a header and %d", n, all.sweeps, everySweeps)
	}
	return all
}

// checkEvery checks that got is the answer all, but with the norms of every n-th sweep alone.
func checkEvery(t *testing.T, what string, got, all answer, every int) {
	t.Helper()
	all.history = linesOf(all.history, every)
	if got != all {
		t.Errorf("%s, norm_every %d: %d sweeps (%s), field %s, history\n%swant %d (%s), %s,\n%s", what, every,
			got.sweeps, got.reason, got.sha, got.history, all.sweeps, all.reason, all.sha, all.history)
	}
}

// linesOf returns the header of a history of all sweeps and its lines of sweeps every-1, 2*every-1 and so on.
func linesOf(history string, every int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(history, "\n"), "\n")
	some := lines[0]
	for i := every; i < len(lines); i += every {
		some += strings.TrimSuffix(lines[i], "\n") + "\n"
	}
	return some
}

// A run with norms of some sweeps ends one sweep after the first of them that meets the tolerance.
func TestNormsOfSomeSweepsEndARun(t *testing.T) {
	t.Parallel()
	base := []string{"grid.nx=97", "grid.ny=131", "output.picture=", "output.field="}
	all, _ := solve(t, append(set(append(base, "solver.tolerance=0", "solver.max_iterations=400")...), "-np", "1")...)
	norms := normsOf(t, all.history)
	const every, tolerance = 16, 0.31
	k := every - 1
	for k+every < len(norms) && norms[k] > tolerance {
		k += every
	}
	if norms[k] > tolerance || k+2 >= len(norms) {
		t.Fatalf("norm %v of sweep %d: the problem does not fit", norms[k], k)
	}
	want, _ := solve(t, append(set(append(base, "solver.tolerance=0", fmt.Sprintf("solver.max_iterations=%d", k+2))...),
		"-np", "1")...)
	want.reason, want.history = "converged", linesOf(want.history, every)
	for _, transport := range []string{"nats", "p2p"} {
		for _, depth := range []string{"1", "5", "16"} {
			got, _ := solve(t, append(set(append(base, fmt.Sprint("solver.tolerance=", tolerance),
				"solver.max_iterations=400", fmt.Sprint("solver.norm_every=", every), "halo.depth="+depth,
				"halo.transport="+transport)...), "-np", "3")...)
			if got != want {
				t.Errorf("%s, depth %s: %d sweeps (%s), field %s; want %d (%s), %s; histories equal: %v", transport,
					depth, got.sweeps, got.reason, got.sha, want.sweeps, want.reason, want.sha,
					got.history == want.history)
			}
		}
	}
}
