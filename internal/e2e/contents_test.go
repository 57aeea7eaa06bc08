package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fileProblem returns the arguments of a problem whose source is f.npy in the working directory, with more keys.
func fileProblem(keys ...string) []string {
	return set(append(cycling("grid.nx=60", "grid.ny=40", "problem.source=f.npy", "solver.relative_tolerance=0",
		"solver.max_iterations=4"), keys...)...)
}

// writeSource writes f.npy of fileProblem to dir. With other set, one value in the middle of a row is another one.
func writeSource(t *testing.T, dir string, other bool) {
	t.Helper()
	const nx, ny, head = 60, 40, 128
	text := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", ny, nx)
	data := append([]byte("\x93NUMPY\x01\x00\x76\x00"), fmt.Sprintf("%-117s\n", text)...)
	data = append(data, make([]byte, 8*nx*ny)...)
	if other {
		data[head+8*(17*nx+30)] = 1
	}
	if err := os.WriteFile(filepath.Join(dir, "f.npy"), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// A run does not go on from a checkpoint with a file that has changed since, in one bit of one value.
func TestResumeWithAnotherFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSource(t, dir, false)
	saving := append(fileProblem("checkpoint.every=2", "checkpoint.dir=saved"), "-np", "2")
	going := fileProblem("solver.max_iterations=6")
	if out := run(t, dir, "launcher", saving...); out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	if out := run(t, dir, "launcher", append(going, "--resume", "saved")...); out.code != 0 {
		t.Fatalf("the same file: exit code %d\n%s", out.code, out.stderr)
	}
	writeSource(t, dir, true)
	const want = `problem.source "f.npy": the file has changed since the checkpoint was written`
	for program, args := range map[string][]string{
		"launcher":    append(going, "--resume", "saved"),
		"jacobi-rank": fileProblem("checkpoint.resume=saved", "run.ranks=1"),
	} {
		if out := run(t, dir, program, args...); out.code != 1 || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: exit code %d, want 1 and %s:\n%s", program, out.code, want, out.stderr)
		}
	}
	if out := run(t, dir, "launcher", saving...); out.code != 1 ||
		!strings.Contains(out.stderr, want) {
		t.Errorf("checkpoints in the same directory: exit code %d, want 1 and %s:\n%s", out.code, want, out.stderr)
	}
}

// Ranks on nodes with different files of one name do not start, also where they differ in one bit of one value.
func TestNodesWithDifferentFiles(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	u := startServer(t)
	var cmds [2]*exec.Cmd
	var texts [2]strings.Builder
	for i := range cmds {
		dir := t.TempDir()
		writeSource(t, dir, i == 1)
		cmds[i] = command(ctx, dir, "jacobi-rank", fileProblem("run.ranks=2")...)
		cmds[i].Env = append(cmds[i].Env, fmt.Sprintf("JACOBI_RANK=%d", i), "JACOBI_SIZE=2", "JACOBI_LOCAL_RANK=0",
			"JACOBI_LOCAL_SIZE=1", "JACOBI_RUN_ID=different-files", "JACOBI_NATS_URL="+u.String())
		cmds[i].Stdout, cmds[i].Stderr = &texts[i], &texts[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		_ = cmd.Wait() // ProcessState is checked
		text := texts[i].String()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, `problem.source "f.npy": rank 0 (host `) ||
			!strings.Contains(text, "read different files; a file must be the same for all") {
			t.Errorf("rank %d: exit code %d\n%s", i, cmd.ProcessState.ExitCode(), text)
		}
	}
}
