package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python runs Python in the folder of the package, with the launcher of this build.
func python(t *testing.T, modules []string, args ...string) outcome {
	t.Helper()
	program := needPython(t, modules...)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join("..", "..", "python")
	cmd.Env = append(os.Environ(), "JACOBI_LAUNCHER="+filepath.Join(bin, "launcher"), "JACOBI_DEVICE_BACKEND=cpu",
		"PYTHONDONTWRITEBYTECODE=1")
	return finish(t, ctx, cmd)
}

// The Python package passes its own tests.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	out := python(t, []string{"numpy", "pytest"}, "-m", "pytest", "-q", "-p", "no:cacheprovider")
	if out.code != 0 {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}
