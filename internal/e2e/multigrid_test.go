package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
)

// cycling are the keys of runs with multigrid, without files that the tests do not read.
func cycling(keys ...string) []string {
	return append([]string{"solver.method=multigrid", "grid.dtype=float64", "output.picture=", "output.field="},
		keys...)
}

// The answer of multigrid is the same for any number of ranks and any transport, and it is converged: a cycle divides
// the norm by more than 15, or, with fixed points inside, by more than 3.
func TestMultigridGivesTheSameBits(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"fixed": {"grid.nx=320", "grid.ny=330", "problem.preset=dirichlet", "solver.tolerance=1e-6",
			"problem.fixed=x > 0.3 && x < 0.31 || abs(y-0.6) < 0.002 && x > 0.5", "problem.initial=x"},
		"periodic": {"grid.nx=350", "grid.ny=501", "solver.tolerance=1e-8"},
		"neumann": {"grid.nx=601", "grid.ny=301", "problem.preset=dirichlet", "problem.left=neumann(1)",
			"problem.top=neumann(x)", "problem.source=sin(7*x)*y", "grid.height=0.7", "problem.screening=2",
			"solver.tolerance=0", "solver.relative_tolerance=1e-9"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := cycling(keys...)
			want, r := solve(t, onRanks(1, keys...)...)
			norms := normsOf(t, want.history)
			if want.reason != "converged" || len(norms) != want.sweeps+1 || r.Norm != norms[want.sweeps] {
				t.Fatalf("%d cycles (%s), %d norms, the last %g", want.sweeps, want.reason, len(norms), r.Norm)
			}
			for i := 2; i < len(norms); i++ {
				if least := map[bool]float64{true: 3, false: 15}[name == "fixed"]; !(norms[i] < norms[i-1]/least) {
					t.Errorf("cycle %d: norm %g after %g", i-1, norms[i], norms[i-1])
				}
			}
			for _, w := range [][2]string{{"2", "p2p"}, {"3", "nats"}, {"5", "p2p"}, {"8", "nats"}} {
				got, _ := solve(t, onRanks(w[0], with(keys, "halo.transport="+w[1])...)...)
				same(t, got, want, w)
			}
		})
	}
}

// A run that ended at max_iterations goes on from its checkpoint, with other ranks, to the answer of a run that did
// not stop. Jacobi's method does not go on from there.
func TestMultigridGoesOn(t *testing.T) {
	t.Parallel()
	const squares = "problem.coefficient=mod(floor(ix/3)+floor(iy/3),2)<1?1:"
	for _, c := range []struct {
		more string
		end  int
	}{
		{"run.name=plain", 5},
		{squares + "100", 5}, // with conjugate gradients
		{squares + "10", 2},  // before these begin
		{squares + "10", 4},
	} {
		t.Run(fmt.Sprint(c.more, c.end), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "checkpoints")
			keys := cycling("grid.nx=300", "grid.ny=200", "solver.relative_tolerance=1e-10", "solver.tolerance=0",
				c.more)
			want, _ := solve(t, onRanks(2, keys...)...)
			part, _ := solve(t, onRanks(3, with(keys, "checkpoint.every=1", "checkpoint.dir="+dir,
				"solver.max_iterations="+strconv.Itoa(c.end))...)...)
			if sets := checkpoints(t, dir); len(sets) != 2 || part.sweeps != c.end || part.reason != "max_iterations" {
				t.Fatalf("%d cycles (%s), checkpoints %v, want 2", part.sweeps, part.reason, sets)
			}
			got, r := solve(t, append(onRanks(1, keys...), "--resume", dir)...)
			if same(t, got, want, "resumed"); r.ResumedAfter != c.end {
				t.Errorf("resumed after %d cycles, want %d", r.ResumedAfter, c.end)
			}
			run(t, t.TempDir(), "launcher", append(set("grid.dtype=float64", "grid.nx=300", "grid.ny=200", c.more),
				"--resume", dir)...).fails(t, 1, `the checkpoint sets solver.method to "multigrid", `+
				`this run does not set it`)
		})
	}
}

// SIGINT ends a run after a common cycle, and its files hold the field after that.
func TestMultigridStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := cycling("grid.nx=4097", "grid.ny=4097", "solver.tolerance=0", "solver.max_iterations=1000000000")
	l := startLive(t, dir, onRanks(2, keys...)...)
	l.waitFor(` cycles \(`)
	l.signal(os.Interrupt)
	l.ends(130)
	want, r := answerIn(t, filepath.Join(dir, "out"))
	got, _ := solve(t, onRanks(1, with(keys, "solver.max_iterations="+strconv.Itoa(r.Sweeps))...)...)
	got.reason = "interrupted"
	same(t, got, want, "as many cycles")
}

// Every method solves meshes that can hardly be coarsened, or not at all.
func TestSmallMeshes(t *testing.T) {
	t.Parallel()
	for method, most := range map[string]int{"jacobi": 1000, "multigrid": 8} {
		for _, size := range [][2]string{{"3", "3"}, {"4", "3"}, {"500", "5"}, {"9", "300"}} {
			got, _ := solve(t, onRanks(1, cycling("solver.method="+method, "problem.preset=dirichlet",
				"solver.tolerance=1e-7", "grid.nx="+size[0], "grid.ny="+size[1])...)...)
			if got.reason != "converged" && got.reason != "stalled" || got.sweeps > most {
				t.Errorf("%s, %v: %d iterations (%s)", method, size, got.sweeps, got.reason)
			}
		}
	}
}

// A source with an initial field of 0 makes updates beside fixed points that are far larger than the first ones.
func TestSourceBesideFixedPoints(t *testing.T) {
	t.Parallel()
	keys := cycling("problem.preset=dirichlet", "problem.left=neumann(0)", "problem.right=neumann(0)",
		"problem.top=neumann(0)", "problem.bottom=neumann(0)", "problem.source=1", "grid.nx=400", "grid.ny=400",
		"problem.fixed=ix == 30 and iy == 30")
	if got, r := solve(t, onRanks(2, keys...)...); got.reason != "converged" || r.Norm > 1e-8 {
		t.Errorf("%s after %d cycles, norm %v", got.reason, got.sweeps, r.Norm)
	}
}

// A comb of channels, which takes Galerkin levels hundreds of cycles, takes few with aggregates. Ranks, transports and
// restarts before and after the change of levels give the same bits.
func TestAggregatesGiveTheSameBits(t *testing.T) {
	t.Parallel()
	keys := cycling("grid.nx=161", "grid.ny=161", "problem.preset=dirichlet", "problem.left=1",
		"problem.right=0", "problem.top=neumann(0)", "problem.bottom=neumann(0)", "problem.coefficient="+
			"(mod(ix,8)==3 and iy>4) or (mod(ix,8)==7 and iy<ny-5) ? 0 : 1")
	want, r := solve(t, onRanks(1, keys...)...)
	left, right := *r.Results.Flux["left"], *r.Results.Flux["right"]
	if want.reason != "converged" || want.sweeps > 20 || r.Aggregates < 5 || r.Aggregates >= want.sweeps ||
		!(math.Abs(left+right) < 1e-3*left) {
		t.Fatalf("%s after %d cycles, aggregates after %d, fluxes %v and %v", want.reason, want.sweeps, r.Aggregates,
			left, right)
	}
	for _, w := range [][2]string{{"2", "p2p"}, {"3", "nats"}, {"8", "p2p"}} {
		got, other := solve(t, onRanks(w[0], with(keys, "halo.transport="+w[1])...)...)
		if same(t, got, want, w); other.Aggregates != r.Aggregates {
			t.Errorf("%v: aggregates after %d cycles, want %d", w, other.Aggregates, r.Aggregates)
		}
	}
	for _, end := range []int{r.Aggregates, r.Aggregates + 1, r.Aggregates + 3} {
		dir := filepath.Join(t.TempDir(), "checkpoints")
		solve(t, onRanks(3, with(keys, "checkpoint.every=100", "checkpoint.dir="+dir,
			"solver.max_iterations="+strconv.Itoa(end))...)...)
		got, other := solve(t, append(onRanks(2, keys...), "--resume", dir)...)
		if same(t, got, want, "resumed after", end); other.Aggregates != r.Aggregates || other.ResumedAfter != end {
			t.Errorf("resumed after %d cycles, want %d; aggregates after %d, want %d", other.ResumedAfter, end,
				other.Aggregates, r.Aggregates)
		}
	}
}

// An initial field that is far larger than the solution hides updates from the norm, and no run that cannot know says
// that it has converged.
func TestFaintNorms(t *testing.T) {
	t.Parallel()
	_, r := solve(t, onRanks(1, cycling("grid.nx=100", "grid.ny=24", "grid.height=0.0007", "problem.left=neumann(y)",
		"problem.right=robin(0.2,0.3)", "problem.top=periodic", "problem.bottom=periodic", "problem.screening=2000",
		"problem.initial=1000", "problem.preset=dirichlet")...)...)
	if r.Verdict != "missed" || !(r.Residual.Relative < 1e-6) {
		t.Errorf("verdict %s, residual %v; want missed, below 1e-6", r.Verdict, r.Residual.Relative)
	}
}

// onDevices are problems that GPUs solve with the bits of the CPU.
var onDevices = map[string][]string{
	"terms": cycling("grid.nx=230", "grid.ny=151", "problem.preset=dirichlet", "problem.left=neumann(1)",
		"problem.source=sin(7*x)*y", "problem.fixed=abs(x-0.5)<0.1 && abs(y-0.4)<0.02", "grid.height=0.7",
		"solver.tolerance=0", "solver.relative_tolerance=1e-5"),
	"materials": with(materials, "solver.method=multigrid"),
	"initial": cycling("problem.preset=dirichlet", "solver.relative_tolerance=1e-8", "grid.nx=130", "grid.ny=151",
		"problem.source=1", "problem.initial=5"),
	"floating": conducting,
	"smooth": cycling("problem.preset=dirichlet", "solver.relative_tolerance=1e-8", "grid.nx=131", "grid.ny=94",
		"grid.height=0.7", "problem.left=neumann(1)", "problem.bottom=neumann(1-x)", "problem.right=x*y",
		"problem.top=flux(1)", "problem.coefficient=1+0.9*sin(6*x)*cos(5*y)", "problem.source=1"),
}

// GPUs give the bits of the CPU, by both methods and over both transports.
func TestProblemsOnGPUs(t *testing.T) {
	needGPU(t)
	problems := map[string][]string{"materials, jacobi": with(materials, "solver.method=jacobi")}
	for name, keys := range onDevices {
		problems[name] = keys
	}
	for name, keys := range problems {
		for _, transport := range []string{"auto", "nats"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				t.Parallel() // a process on a GPU starts slowly
				agreeOnGPUs(t, nil, with(keys, "halo.transport="+transport), "1", "2", "3", "5")
			})
		}
	}
}

// The source of the kernels, compiled for the CPU, gives the bits of the CPU's own code, also if one GPU of four
// reaches the memory of no other.
func TestProblemsOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	for name, ranks := range map[string][]string{"terms": {"1", "2", "3", "4"}, "materials": {"1", "2"},
		"initial": {"1", "3"}, "floating": {"1", "2"}, "smooth": {"1", "3"}} {
		t.Run(name, func(t *testing.T) {
			for _, r := range agreeOnGPUs(t, env, onDevices[name], ranks...) {
				wantTransports(t, r, func(a, b int) string {
					if a == 3 || b == 3 {
						return "shared memory"
					}
					return "peer memory"
				})
			}
		})
	}
}

// agreeOnGPUs is sameOnGPUs with the answer of the CPU, and the base of its tolerance.
func agreeOnGPUs(t *testing.T, env, keys []string, ranks ...string) []report {
	t.Helper()
	want, first := solve(t, onRanks(1, with(keys, "device.backend=cpu")...)...)
	reports := sameOnGPUs(t, env, keys, want, ranks)
	for i, r := range reports {
		if r.Base != first.Base {
			t.Errorf("np %s: base %v, want %v", ranks[i], r.Base, first.Base)
		}
	}
	return reports
}

// sameOnGPUs checks that runs on GPUs, or in env on what stands for them, give the wanted answer. It returns their
// reports.
func sameOnGPUs(t *testing.T, env, keys []string, want answer, ranks []string) (reports []report) {
	t.Helper()
	for _, np := range ranks {
		got, r := solveWith(t, env, onRanks(np, with(keys, "device.backend=cuda")...)...)
		same(t, got, want, "np", np)
		for _, rank := range r.Ranks {
			if !strings.HasPrefix(rank.Device, "cuda") {
				t.Errorf("np %s: rank %d on %q", np, rank.Rank, rank.Device)
			}
		}
		reports = append(reports, r)
	}
	return reports
}

// wantTransports checks how the ranks of a run exchange rows.
func wantTransports(t *testing.T, r report, want func(a, b int) string) {
	t.Helper()
	for _, rank := range r.Ranks {
		for side, link := range rank.Transports {
			if w := want(rank.Rank, link.Neighbour); link.Transport != w {
				t.Errorf("rank %d, %s: %s (%s), want %s", rank.Rank, side, link.Transport, link.Why, w)
			}
		}
	}
}

// Of GPUs on two nodes those of one node run multigrid, which takes less time; with a transport that a key names, all
// do. The bits are the same.
func TestMultigridOnGPUsOfTwoNodes(t *testing.T) {
	t.Parallel()
	needHosts(t)
	keys := set(cycling("grid.nx=65", "problem.preset=dirichlet", "device.backend=cuda")...)
	env := libraryPath(emulatetest.Build(t))
	want := map[string]string{} // hash of the field, by transport
	for transport, working := range map[string]int{"auto": 1, "nats": 2} {
		dir := t.TempDir()
		outs := wrapped(t, dir, pmi(2), func(_ int, cmd *exec.Cmd) *exec.Cmd {
			cmd.Env = append(cmd.Env, env...)
			return through(t, cmd, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
		}, append(keys, set("halo.transport="+transport)...)...)
		all := together(outs)
		if all.code != 0 {
			t.Fatalf("%s: exit code %d\n%s", transport, all.code, all.stderr)
		}
		r := readReport(t, filepath.Join(dir, "out"))
		idle := "multigrid runs on 1 of 2 ranks: rows between nodes travel through the hosts"
		if len(r.Ranks) != working || strings.HasPrefix(r.Idle, idle) != (working == 1) ||
			strings.Contains(all.stdout, idle) != (working == 1) {
			t.Errorf("%s: %d ranks work, want %d; %q in\n%s", transport, len(r.Ranks), working, r.Idle, all.stdout)
		}
		want[transport] = r.FieldHash
	}
	if want["auto"] != want["nats"] {
		t.Errorf("the fields differ: %v", want)
	}
	dry := runWith(t, env, t.TempDir(), "launcher", append(keys, "-np", "2", "--dry-run", "--host",
		"localhost:1,node7:1")...)
	for _, w := range []string{"1 rank on localhost: ", "\n# multigrid runs on 1 of 2 ranks: ", "\n  ranks: 2\n"} {
		if !strings.Contains(dry.stdout, w) {
			t.Errorf("dry run: exit code %d, no %q in\n%s%s", dry.code, w, dry.stdout, dry.stderr)
		}
	}
}

// A killed rank ends a run whose GPUs wait for its rows.
func TestKilledRankEndsMultigridOnEmulatedGPUs(t *testing.T) {
	cmd := command(limited(t), t.TempDir(), "launcher", onRanks(3, cycling("grid.nx=400", "grid.ny=400",
		"problem.preset=dirichlet", "solver.tolerance=0", "solver.max_iterations=1000000000",
		"device.backend=cuda")...)...)
	cmd.Env = append(cmd.Env, libraryPath(emulatetest.Build(t))...)
	l := startCommand(t, cmd)
	l.waitFor(`of \d+ cycles .*, norm \d`)
	kill(t, l.allRanks(3)[1])
	l.ends(1, `rank \d .*killed`)
	l.leavesNothing()
}
