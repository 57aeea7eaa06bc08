package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bad input is refused before any rank starts. The error has the key or argument, its value, and the allowed values.
func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, port, _ := net.SplitHostPort(takenPort(t))
	for _, c := range badInput(dir, port, write) {
		out := run(t, dir, "launcher", c.args...)
		if out.code == 0 || !strings.Contains(out.stderr, "launcher: ") || !strings.Contains(out.stderr, c.want) {
			t.Errorf("launcher %v: exit code %d, stderr\n%s\nwant %s", c.args, out.code, out.stderr, c.want)
		}
		if out.took > 15*time.Second {
			t.Errorf("launcher %v took %v to refuse", c.args, out.took)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "out")); err == nil && len(entries) > 0 {
		t.Errorf("a refused run wrote %v", entries)
	}
}

// refusal is a command line of the launcher and a part of the message that refuses it.
type refusal struct {
	args []string
	want string
}

// badInput returns command lines that the launcher must refuse. port is taken, and write makes a file in dir.
func badInput(dir, port string, write func(name, text string) string) []refusal {
	file := write("file", "")
	return []refusal{
		{[]string{"-np", "0"}, "-np 0: must be at least 1"},
		{set("grid.nx=2"), "grid.nx 2: 3 to 2147483647 are allowed"},
		{set("grid.ny=abc"), `grid.ny "abc" (--set): must be an integer, 3 to 2147483647`},
		{set("grid.nxx=5"), "unknown key grid.nxx (--set): did you mean grid.nx?"},
		{set("solver.tolerance=-1"), "solver.tolerance -1: must be a finite number of at least 0"},
		{set("problem.left=sin(x"), `problem.left "sin(x": column 6: the expression ends too early`},
		{set("problem.left=1/(y-y)"), `problem.left "1/(y-y)" at row 0, column 0 (x = 0, y = 0): +Inf; values must ` +
			`be finite`},
		{set("problem.initial=nope.npy"), `problem.initial "nope.npy": no such file or directory`},
		{set("output.dir=" + file), `output.dir "` + file + `"`},
		{set("output.picture=a.gif"), `output.picture "a.gif": the name has to end in .png, .jpg or .jpeg`},
		{set("output.field=a.txt"), `output.field "a.txt": the name has to end in .npy`},
		{set("nats.url=nats://127.0.0.1:1"), "nats.url: connect to the NATS server at nats://127.0.0.1:1: connection " +
			"refused"},
		{set("device.backend=cuda"), `device.backend "cuda"`},
		{set("grid.dtype=float16"), "grid.dtype"},
		{set("grid.nx=4000000", "grid.ny=4000000"), "grid.nx 4000000, grid.ny 4000000: memory: "},
		{[]string{"--config", filepath.Join(dir, "none.yaml")}, "none.yaml: no such file or directory"},
		{[]string{"--config", write("a.yaml", "grid: {nx: 5")}, "a.yaml"},
		{[]string{"--config", write("b.json", `{"solver": {"tolerence": 1}}`)}, "did you mean solver.tolerance?"},
		{[]string{"--config", write("c.toml", "[halo]\ntransport = 5\n")}, "halo.transport"},
		{set("problem.source=1/0"), `problem.source "1/0" at row 1, column 1`},
		{set("problem.fixed=true"), `problem.fixed "true": it fixes all`},
		{set("problem.fixed=nope.png"), `problem.fixed "nope.png": no such file or directory`},
		{set("problem.left=neumann(1"), `problem.left "neumann(1": the parenthesis after neumann is not closed`},
		{set("problem.left=neumann(0)", "problem.right=neumann(0)"), `no side has values, so any constant can be ` +
			`added`},
		{set("grid.ny=64", "halo.depth=10000"), "halo.depth 10000: grid.ny 64 has 62 rows inside; 1 to 62 " +
			"are allowed\n"},
		{set("nats.port=" + port), "nats.port " + port + ": embedded NATS server on 127.0.0.1: Error listening on " +
			"port: 127.0.0.1:" + port},
		{[]string{"--resume", ""}, `--resume "": must be the directory of a checkpoint; --restart goes on from ` +
			`where checkpoints are written`},
		{[]string{"-np2", "--set", "grid.nx=2"}, "grid.nx 2: 3 to 2147483647 are allowed"},
		{[]string{"--config", write("d.json", "{\n \"grid\": {\n  \"nx\": 5,,\n }}")},
			"run file " + filepath.Join(dir, "d.json") + ": line 3, column 11: "},
		{set("problem.left=" + strings.Repeat("a", 400)), `problem.left "` + strings.Repeat("a", 119) + " … " +
			strings.Repeat("a", 39) + `" (402 characters): column 1: unknown name `},
		{[]string{"--bogus"}, "unknown flag --bogus; see launcher --help"},
		{[]string{"sovle"}, `argument "sovle": a run file is given with --config`},
	}
}

// A kernel that this processor does not have is refused before any rank starts, by both methods.
func TestKernelOfAnotherProcessorIsRefused(t *testing.T) {
	t.Parallel()
	const want = `launcher: device.kernel "avx512": cpu kernel "avx512": this machine has `
	for _, keys := range [][]string{
		nil, {"solver.method=multigrid", "grid.dtype=float64", "grid.nx=99", "grid.ny=99"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		cmd := command(ctx, t.TempDir(), "launcher", set(append(keys, "device.kernel=avx512")...)...)
		cmd.Env = append(cmd.Env, "GODEBUG=cpu.avx512f=off")
		if out := finish(t, ctx, cmd); out.code == 0 || !strings.Contains(out.stderr, want) {
			t.Errorf("%v: exit code %d, stderr\n%s\nwant %s", keys, out.code, out.stderr, want)
		}
	}
}

// A dry run says what would run and starts nothing.
func TestDryRun(t *testing.T) {
	dir := t.TempDir()
	args := append(set("grid.nx=100", "grid.ny=100", "halo.depth=4", "nats.url=nats://user:hunter2@127.0.0.1:4222"),
		"-np", "3", "--dry-run")
	out := run(t, dir, "launcher", args...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	for _, want := range []string{"[1, 32)", "[32, 64)", "[64, 99)", "ranks: 3", "nx: 100"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("no %q in\n%s", want, out.stdout)
		}
	}
	if strings.Contains(out.stdout+out.stderr, "hunter2") {
		t.Errorf("the password is shown:\n%s%s", out.stdout, out.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "report.json")); err == nil {
		t.Error("a dry run wrote a report")
	}
}

// A rank needs all variables of its identity or none.
func TestRankAloneRefusesHalfAnIdentity(t *testing.T) {
	cmd := command(t.Context(), t.TempDir(), "jacobi-rank", set("grid.nx=8", "grid.ny=8")...)
	cmd.Env = append(cmd.Env, "JACOBI_RANK=0")
	out, err := cmd.CombinedOutput()
	const want = "JACOBI_RANK is set but JACOBI_SIZE, JACOBI_LOCAL_RANK, JACOBI_LOCAL_SIZE, JACOBI_RUN_ID is not: " +
		"all are needed, or none"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, %s; want %s", err, out, want)
	}
}

// No program waits at a named pipe in the place of a file: it names the pipe and ends. A rendezvous file may still be
// replaced, so a rank retries until its timeout.
func TestNamedPipesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.npy")
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	meeting := filepath.Join(dir, "out", ".jacobi-rendezvous")
	for _, path := range []string{pipe, filepath.Join(dir, "pipe.yaml"), meeting} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const refused = "a named pipe, not a regular file"
	for _, c := range []struct {
		program string
		args    []string
		want    string
	}{
		{"launcher", []string{"--config", "pipe.yaml"}, "open pipe.yaml: " + refused},
		{"launcher", set("problem.initial=pipe.npy"), `launcher: problem.initial "pipe.npy": ` + refused},
		{"launcher", []string{"--hostfile", "pipe.npy"}, "launcher: --hostfile: open pipe.npy: " + refused},
		{"launcher", []string{"--hostfile", "/dev/zero"}, "--hostfile: open /dev/zero: a device, not a regular file"},
		{"launcher", set("nats.url=nats://h", "nats.secret_file=pipe.npy"), "secret_file: open pipe.npy: " + refused},
		{"launcher", set("nats.url=nats://h", "nats.ca=pipe.npy"), "nats.ca: open pipe.npy: " + refused},
		{"jacobi-rank", []string{"--config", "pipe.yaml"}, "jacobi-rank: run file: open pipe.yaml: " + refused},
		{"jacobi-rank", set("problem.initial=pipe.npy"), `jacobi-rank: problem.initial "pipe.npy": ` + refused},
	} {
		out := run(t, dir, c.program, c.args...)
		if out.code == 0 || !strings.Contains(out.stderr, c.want) || out.took > 15*time.Second {
			t.Errorf("%s %v: code %d after %v\n%s\nwant %s", c.program, c.args, out.code, out.took, out.stderr, c.want)
		}
	}
	late := byHand(t, dir, pmi(2)[1:], append(scheduled, set("halo.timeout=1s")...)...)[0]
	want := "find the server of rank 0 within 1s: rendezvous file " + meeting + ": open " + meeting + ": " + refused
	if late.code != 3 || !strings.Contains(late.stderr, want) || late.took > 15*time.Second {
		t.Errorf("exit code %d after %v, %s; want 3 and %s", late.code, late.took, late.stderr, want)
	}
	// Rank 0 replaces the pipe, and the run succeeds.
	if out := together(byHand(t, dir, pmi(2), scheduled...)); out.code != 0 {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
}

// A run file may come from standard input.
func TestRunFileFromStandardInput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := command(ctx, t.TempDir(), "launcher", "--config", "-", "--dry-run")
	cmd.Stdin = strings.NewReader("grid: {nx: 321, ny: 320}\nrun: {ranks: 2}\n")
	const want = "321 x 320"
	if out := finish(t, ctx, cmd); out.code != 0 || !strings.Contains(out.stdout, want) {
		t.Errorf("exit code %d\n%s%s, want %s", out.code, out.stdout, out.stderr, want)
	}
}
