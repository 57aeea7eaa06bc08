package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python prepares Python in the folder of the package, with the launcher of this build.
func python(t *testing.T, modules []string, args ...string) (context.Context, *exec.Cmd) {
	t.Helper()
	program := needPython(t, modules...)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join("..", "..", "python")
	cmd.Env = append(os.Environ(), "JACOBI_LAUNCHER="+filepath.Join(bin, "launcher"), "JACOBI_DEVICE_BACKEND=cpu",
		"PYTHONDONTWRITEBYTECODE=1")
	return ctx, cmd
}

// The Python package passes its own tests.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	ctx, cmd := python(t, []string{"numpy", "pytest"}, "-m", "pytest", "-q", "-p", "no:cacheprovider")
	out := finish(t, ctx, cmd)
	if out.code != 0 {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// Ranks on other hosts read arrays from a directory that they see. Without it the problem is refused, and the session
// goes on.
func TestPythonOverHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	dir := t.TempDir()
	const script = `import sys, numpy, jacobisolver
source = numpy.linspace(0, 1, 65 * 97).reshape(65, 97)
with jacobisolver.Session(host="a:1,b:2", directory=sys.argv[1], arguments=["--ssh", sys.argv[2]]) as far:
    for more in ({"method": "jacobi", "tolerance": 0.1}, {}):
        try:
            r = far.solve(source=source, **more)
            print(len(r.report["ranks"]), (r.field == jacobisolver.solve(source=source, **more).field).all())
        except jacobisolver.SolveError as e:
            print(e)
    print(far.solve(nx=33, top=1).verdict)`
	solve := func(all string) {
		t.Helper()
		ctx, cmd := python(t, []string{"numpy"}, append([]string{"-c", script, dir}, c.ssh("user")[1:]...)...)
		want := all + "\n1 True\nmet\n" // rank 0 does small problems here
		if out := finish(t, ctx, c.on(cmd)); out.code != 0 || out.stdout != want {
			t.Errorf("exit code %d\n%s%s\nwant %s", out.code, out.stdout, out.stderr, want)
		}
	}
	solve("3 True")
	c.sh("nsenter", "--mount", "--target", fmt.Sprint(c.processes("b", "sshd")[0]), "mount", "-t", "tmpfs", "none", dir)
	const none = `problem.source "source-1.npy": no such file or directory`
	solve("rank 1: " + none + "; rank 2: " + none)
}
