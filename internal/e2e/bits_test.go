package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jacobi/internal/compute/cpu/kernel"
)

// The norms of the multi-GPU sample's problem match all known digits.
func TestNormsOfTheMultiGPUSample(t *testing.T) {
	t.Parallel()
	got, _ := solve(t, onRanks(3, "grid.nx=1024", "grid.ny=1024", "output.picture=", "output.field=")...)
	norms := normsOf(t, got.history)
	if got.sweeps != 1000 || got.reason != "max_iterations" || len(norms) != 1000 {
		t.Fatalf("%d sweeps (%s), %d norms; want 1000 (max_iterations)", got.sweeps, got.reason, len(norms))
	}
	for i, want := range []string{"0.225864", "0.134109", "0.098835", "0.079573", "0.067244", "0.058592", "0.052145",
		"0.047130", "0.043104", "0.0397910816"} {
		if n := strconv.FormatFloat(norms[100*i+99], 'f', len(want)-2, 64); n != want {
			t.Errorf("sweep %d: norm %s, want %s", 100*i+99, n, want)
		}
	}
}

func normsOf(t *testing.T, history string) []float64 {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(history)).ReadAll()
	if err != nil || !slices.Equal(lines[0], []string{"iteration", "l2_norm"}) {
		t.Fatalf("history: %v, header %v", err, lines[0])
	}
	var norms []float64
	for i, l := range lines[1:] {
		v, err := strconv.ParseFloat(l[1], 64)
		if err != nil || l[0] != strconv.Itoa(i) {
			t.Fatalf("history line %d: %v", i+2, l)
		}
		norms = append(norms, v)
	}
	return norms
}

// The problems of the matrix. One is periodic and meets its tolerance in the middle of a pass for every depth. The
// other has fixed sides and an odd width, and runs to max_iterations.
var problems = map[string][]string{
	"converges": {"grid.nx=97", "grid.ny=131", "solver.tolerance=0.31", "solver.max_iterations=400"},
	"fixed": {"grid.nx=130", "grid.ny=141", "problem.preset=dirichlet", "problem.initial=sin(7*x)*y - 0.3",
		"problem.left=y*y", "solver.max_iterations=43"},
}

// The answer is the same for any number of ranks, transport, depth and kernel: each pair of them is run in each of the
// four problems, and with BITS=all every combination. That every kernel gives the bits of the reference at every depth,
// and that every transport delivers what was sent, is proven without processes (solver/backendtest, halo).
func TestSameBits(t *testing.T) {
	kernels, ranks, depths := kernel.Names(), []int{1, 2, 3, 5, 8}, []int{1, 2, 5, 8}
	shift := 0
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		for _, dtype := range []string{"float32", "float64"} {
			own := shift
			shift++
			t.Run(name+"/"+dtype, func(t *testing.T) {
				t.Parallel()
				base := with(problems[name], "grid.dtype="+dtype, "output.picture=", "output.field=")
				want, _ := solve(t, onRanks(1, with(base, "device.kernel=portable", "halo.depth=1")...)...)
				if name == "converges" && want.reason != "converged" {
					t.Fatalf("the run ended by %s after %d sweeps", want.reason, want.sweeps)
				}
				for i, np := range ranks {
					for j, depth := range depths {
						for k, kernel := range kernels {
							for l, transport := range []string{"nats", "p2p"} {
								if np == 1 && transport == "nats" {
									continue // a rank alone has no neighbour to reach over NATS
								}
								if (i+j+k+own)%len(kernels) != 0 || np > 1 && (i+j/2+own)%2 != l {
									if os.Getenv("BITS") != "all" {
										continue
									}
								}
								args := onRanks(np, with(base, "device.kernel="+kernel, "halo.transport="+transport,
									fmt.Sprintf("halo.depth=%d", depth))...)
								got, _ := solve(t, args...)
								same(t, got, want, args)
							}
						}
					}
				}
			})
		}
	}
}

// Rows that travel packed are the same bits, and the report says how much was packed, and what went over each link.
func TestPackedRows(t *testing.T) {
	t.Parallel()
	for dtype, size := range map[string]int{"float32": 4, "float64": 8} {
		keys := []string{"grid.nx=300", "grid.ny=96", "grid.dtype=" + dtype, "solver.max_iterations=200",
			"halo.depth=7", "output.picture="}
		want, _ := solve(t, onRanks(1, keys...)...)
		got, rep := solve(t, onRanks(3, with(keys, "halo.transport=nats", "halo.compress=always")...)...)
		same(t, got, want, dtype)
		for _, k := range rep.Ranks {
			for side, l := range k.Transports {
				if l.NATS == nil || l.NATS.Plain == 0 || l.NATS.Packed >= l.NATS.Plain {
					t.Errorf("%s, rank %d, %s: %+v; want fewer bytes packed than plain", dtype, k.Rank, side, l.NATS)
				}
				// 28 passes of 7 sweeps, and one of 4 that no exchange follows
				checkTraffic(t, rep, k.Rank, side, 28, 28*2*7*300*size)
			}
		}
	}
}

// checkTraffic checks what went over a link, and its times.
func checkTraffic(t *testing.T, r report, rank int, side string, exchanges, bytes int) {
	t.Helper()
	n := r.Ranks[rank].Transports[side].Traffic
	if n == nil || n.Exchanges != exchanges || n.Bytes != bytes {
		t.Errorf("rank %d, %s: traffic %+v, want %d exchanges and %d bytes", rank, side, n, exchanges, bytes)
		return
	}
	for name, part := range map[string]*float64{"copy out": n.CopyOut, "send": n.Send, "copy in": n.CopyIn} {
		if part == nil || !(*part > 0) {
			t.Errorf("rank %d, %s: %s: got %v, want a time", rank, side, name, part)
		}
	}
}

// golden is a run and its answer, which must be the same on every processor and architecture.
type golden struct {
	name   string
	args   []string
	sweeps int
	reason string
	field  string // hash of the field
	norms  string // SHA-256 of history.csv
}

// everyFunction is an expression that calls all functions, with values between -1 and 1.
const everyFunction = "tanh(0.05*(sin(9*x) + cos(40*x*y) + tan(x-y) + asin(x*y) + acos(x-y) + atan(3*x)" +
	" + atan2(y-0.5, x-0.5) + sinh(x+y) + cosh(2*y) + exp(x-3*y) + log(x+y*y) + log10(1+ix*iy) + sqrt(x+y)" +
	" + cbrt(x-y) + abs(x-0.3) + min(x, y) + max(x, y, 0.2) + floor(5*x) + ceil(5*y) + round(7*x*y) + pow(x+y, 1.7)" +
	" + hypot(x, y) + mod(9*x, y+0.1) + float32(x*y) + (x+1)^y + 7*x%(y+1)))"

var goldens = []golden{
	{
		"exponential", set("grid.nx=101", "grid.ny=67", "grid.dtype=float64", "problem.preset=dirichlet",
			"problem.initial=exp(-x*y)*cos(7*x)", "solver.tolerance=0", "solver.max_iterations=40"), 40,
		"max_iterations",
		"61c55a6c9daf9504311c55af1f78a6a92318f590abd46a3165ccf57e89aa7eb6",
		"66b3a6217a56209873e565252ef8a40f33f8c8a5d2f837b60e9c340a1461b87f",
	},
	{
		"functions", set("grid.nx=83", "grid.ny=71", "grid.dtype=float64", "problem.preset=dirichlet",
			"problem.initial="+everyFunction, "problem.left=0", "solver.tolerance=0.1"), 88, "converged",
		"8a8464463e929f43475f559f66b5c5a8749a4ab611785e313f77b399d18c005b",
		"bcb5d6a9efa3eab3834bf999553a16857d80c45a1450f63c76d586765aba4f19",
	},
	{
		"gtc2019", set("grid.nx=301", "grid.ny=259", "grid.dtype=float64", "solver.max_iterations=50"), 50,
		"max_iterations",
		"ffd25f85067ea8d3a44973c23c536fbb217636920c6d11219f01b1f54b1b419b",
		"c676deb79423bf8e56f951054c14be4286aa93e68c954da1af5b3073045040e8",
	},
	{
		"gtc2019 float32", set("grid.nx=301", "grid.ny=259", "solver.max_iterations=50"), 50, "max_iterations",
		"1ee64da5da9b9c2e5a12f8da25d456a82c6309730203e3006f964283578b6e9e",
		"a50b1ceb496154a25892aced8a9d4775746e59f71a3773285e0099e221ba4569",
	},
	{
		"multigrid", set("grid.nx=131", "grid.ny=97", "grid.dtype=float64", "problem.preset=dirichlet",
			"problem.initial=exp(-x*y)*cos(7*x)", "solver.method=multigrid", "solver.tolerance=1e-9"), 7, "converged",
		"b8185bf146840229a8e333a7a77c8b5df43c30805ffa482eb2247208d83cf25e",
		"8392921247c332385a915191fcf59d39580e8d1d92bfa054e365fb78fd86c28e",
	},
}

// check runs a single jacobi-rank, prepared by command, and checks its answer.
func (g golden) check(t *testing.T, command func(ctx context.Context, dir string, args []string) *exec.Cmd) report {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	args := slices.Concat(g.args, set("output.field=", "output.picture="))
	if out := finish(t, ctx, command(ctx, dir, args)); out.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", g.name, out.code, out.stdout, out.stderr)
	}
	got, r := answerIn(t, filepath.Join(dir, "out"))
	got.history = fmt.Sprintf("%x", sha256.Sum256([]byte(got.history)))
	same(t, got, answer{g.field, g.norms, g.sweeps, g.reason}, g.name, "norms", got.history)
	return r
}

// The answer is the same on this processor with all its features, and without FMA and SIMD, where the standard library
// computes some functions differently.
func TestSameBitsOnOtherProcessors(t *testing.T) {
	t.Parallel()
	for _, g := range goldens {
		for _, godebug := range []string{"", "cpu.fma=off", "cpu.fma=off,cpu.avx2=off,cpu.avx512f=off"} {
			r := g.check(t, func(ctx context.Context, dir string, args []string) *exec.Cmd {
				cmd := command(ctx, dir, "jacobi-rank", args...)
				cmd.Env = append(cmd.Env, "GODEBUG="+godebug)
				return cmd
			})
			if got := r.Ranks[0].Kernel; strings.Contains(godebug, "avx2") && got != "portable" {
				t.Errorf("GODEBUG=%s: kernel %s, want portable", godebug, got)
			}
		}
	}
}

// The answer is the same on another architecture, in plain Go.
func TestSameBitsOnARM64(t *testing.T) {
	t.Parallel()
	arm64 := onARM64(t)
	for _, g := range goldens {
		if got := g.check(t, arm64).Ranks[0].Kernel; got != "portable" {
			t.Errorf("%s: kernel %s, want portable", g.name, got)
		}
	}

	// Ranks of two architectures join only if they agree about every function and about rows of the field.
	g := goldens[1]
	g.name, g.args = "both", slices.Concat(g.args, set("run.ranks=2", "halo.transport=nats"))
	u := startServer(t)
	place := func(rank int, cmd *exec.Cmd) *exec.Cmd { // as Open MPI does
		cmd.Env = append(cmd.Env, fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", rank), "OMPI_COMM_WORLD_SIZE=2",
			fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_RANK=%d", rank), "OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"JACOBI_RUN_ID=both", "JACOBI_NATS_URL="+u.String())
		return cmd
	}
	g.check(t, func(ctx context.Context, dir string, args []string) *exec.Cmd {
		ctx2, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit) // this rank may end after rank 0
		other := place(1, arm64(ctx2, dir, args))
		var text bytes.Buffer
		other.Stdout, other.Stderr = &text, &text
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			defer cancel()
			if err := other.Wait(); err != nil {
				t.Errorf("the rank on arm64: %v\n%s", err, &text)
			}
		})
		return place(0, command(ctx, dir, "jacobi-rank", args...))
	})
}
