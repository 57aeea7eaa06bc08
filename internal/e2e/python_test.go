package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// The package that pip installs from a tree finds the launcher that is built there, and says how to build it.
func TestPythonInstalls(t *testing.T) {
	t.Parallel()
	program := needPython(t, "numpy", "venv", "ensurepip", "setuptools", "wheel")
	tree := t.TempDir()
	if err := errors.Join(os.CopyFS(filepath.Join(tree, "python"), os.DirFS(filepath.Join("..", "..", "python"))),
		os.WriteFile(filepath.Join(tree, "Makefile"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) outcome {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = tree
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "JACOBI_") || strings.HasPrefix(v, "PYTHON") || strings.HasPrefix(v, "PIP_")
		}), "PATH="+filepath.Dir(program)+":/usr/bin:/bin")
		return finish(t, ctx, cmd)
	}
	for _, args := range [][]string{{program, "-m", "venv", "--system-site-packages", "venv"},
		{"venv/bin/pip", "install", "-q", "--no-index", "--no-build-isolation", "./python"}} {
		if out := run(args[0], args[1:]...); out.code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, out.code, out.stdout, out.stderr)
		}
	}
	const script = `import jacobisolver, numpy
print("/venv/" in jacobisolver.__file__)
try:
    print(jacobisolver.solve(nx=257, ny=257, source="sin(pi*x)", top=1, right="neumann(0)", ranks=2).verdict)
except jacobisolver.SessionError as e:
    print(e)`
	says := func(want string) {
		t.Helper()
		if out := run("venv/bin/python", "-c", script); out.stdout != "True\n"+want+"\n" {
			t.Errorf("%s%s\nwant %s", out.stdout, out.stderr, want)
		}
	}
	says("there is no program launcher, neither beside jacobisolver nor on PATH: `make build` in " + tree +
		" builds it, or JACOBI_LAUNCHER names it")
	if err := os.Symlink(bin, filepath.Join(tree, "bin")); err != nil {
		t.Fatal(err)
	}
	says("met")
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
