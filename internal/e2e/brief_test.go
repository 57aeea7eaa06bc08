package e2e

import (
	"os"
	"strings"
	"testing"
)

// Without arguments the launcher says what it is and starts nothing, whatever keys the environment has.
func TestLauncherWithoutArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := run(t, dir, "launcher")
	for _, text := range []string{"launcher solves -div(a grad u) + k2 u = f", "launcher --help", "-np 8"} {
		if !strings.Contains(out.stderr, text) {
			t.Errorf("no %q in\n%s", text, out.stderr)
		}
	}
	if made, err := os.ReadDir(dir); out.code != 2 || out.stdout != "" || len(made) > 0 || err != nil {
		t.Errorf("exit code %d, output %q, files %v, %v", out.code, out.stdout, made, err)
	}
}
