package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// golden is a run and its answer, which must be the same on every processor and architecture.
type golden struct {
	name   string
	args   []string
	sweeps int
	reason string
	field  string // SHA-256 of the interior rows
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
		"b56d6f9799ea49850273c9f1f0f2b7295c89607e09406156246097e845fc55d6",
		"66b3a6217a56209873e565252ef8a40f33f8c8a5d2f837b60e9c340a1461b87f",
	},
	{
		"functions", set("grid.nx=83", "grid.ny=71", "grid.dtype=float64", "problem.preset=dirichlet",
			"problem.initial="+everyFunction, "problem.left=0", "solver.tolerance=0.1"), 88, "converged",
		"28fa33c9b9c06a2718fc846c19c39bcf9d59e0bacea5be1b4e50002931ffbc46",
		"bcb5d6a9efa3eab3834bf999553a16857d80c45a1450f63c76d586765aba4f19",
	},
	{
		"gtc2019", set("grid.nx=301", "grid.ny=259", "grid.dtype=float64", "solver.max_iterations=50"), 50,
		"max_iterations",
		"7d3811096c29784add8c402205b699b9a2c5338bb073d714d2aadcd8697eba2f",
		"c676deb79423bf8e56f951054c14be4286aa93e68c954da1af5b3073045040e8",
	},
	{
		"gtc2019 float32", set("grid.nx=301", "grid.ny=259", "solver.max_iterations=50"), 50, "max_iterations",
		"37239d9bbf411b133b06c66c8f55b8aedf56c1b4dfb71e006fb1b333a86b7bca",
		"a50b1ceb496154a25892aced8a9d4775746e59f71a3773285e0099e221ba4569",
	},
	{
		"multigrid", set("grid.nx=131", "grid.ny=97", "grid.dtype=float64", "problem.preset=dirichlet",
			"problem.initial=exp(-x*y)*cos(7*x)", "solver.method=multigrid", "solver.tolerance=1e-9"), 7, "converged",
		"5e4a8a976cc133f08b24587c2be16545b2076ac77eaa8eaadc044633bdc8e676",
		"8392921247c332385a915191fcf59d39580e8d1d92bfa054e365fb78fd86c28e",
	},
}

// check runs a single jacobi-rank, prepared by command, and checks its answer.
func (g golden) check(t *testing.T, command func(ctx context.Context, dir string, args []string) *exec.Cmd) report {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	args := append(g.args[:len(g.args):len(g.args)], set("output.field=", "output.picture=")...)
	out := finish(t, ctx, command(ctx, dir, args))
	if out.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", g.name, out.code, out.stdout, out.stderr)
	}
	r := readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	norms := fmt.Sprintf("%x", sha256.Sum256(history))
	if r.Sweeps != g.sweeps || r.StopReason != g.reason || r.FieldSHA256 != g.field || norms != g.norms {
		t.Errorf("%s: %d sweeps (%s), field %s, norms %s; want %d (%s), %s, %s", g.name, r.Sweeps, r.StopReason,
			r.FieldSHA256, norms, g.sweeps, g.reason, g.field, g.norms)
	}
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
	g.name, g.args = "both", append(g.args[:len(g.args):len(g.args)], set("run.ranks=2", "halo.transport=nats")...)
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

// needARM64 skips a test visibly if no program for arm64 can be started. The programs are linked with the C library,
// which they need to open CUDA's driver.
func needARM64(t *testing.T) (qemu, libc string) {
	t.Helper()
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skipf("NOT RUN: %s needs Debian's qemu-user-static", t.Name())
	}
	libc = "/usr/aarch64-linux-gnu"
	if _, err := os.Stat(libc); err != nil {
		t.Skipf("NOT RUN: %s needs Debian's libc6-arm64-cross", t.Name())
	}
	return qemu, libc
}

// onARM64 returns a function that prepares commands that run the jacobi-rank of the archive for arm64.
func onARM64(t *testing.T) func(ctx context.Context, dir string, args []string) *exec.Cmd {
	t.Helper()
	qemu, libc := needARM64(t)
	const name = "jacobi-" + version + "-linux-arm64"
	dist, dir := needDist(t), t.TempDir()
	unpack(t, filepath.Join(dist, name+".tar.gz"), dir)
	rank := filepath.Join(dir, name, "bin", "jacobi-rank")
	return func(ctx context.Context, dir string, args []string) *exec.Cmd {
		return command(ctx, dir, qemu, append([]string{"-L", libc, rank}, args...)...)
	}
}
