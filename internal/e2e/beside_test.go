package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run file may name files beside it, wherever the launcher is started and the ranks are. Outputs go to the working
// directory.
func TestFilesBesideARunFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := filepath.Join(dir, "cases")
	if err := os.Mkdir(cases, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pair.yaml", "pair.png"} {
		data, err := os.ReadFile("../../configs/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(cases, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// A stand-in for ssh, to a host whose sessions begin in another directory.
	const ssh = "#!/bin/sh\nwhile [ \"$1\" != elsewhere ]; do shift; done\nshift\ncd /\nexec sh -c \"$*\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(ssh), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config", "cases/pair.yaml"}
	for _, c := range []struct {
		more []string
		want string
	}{
		{[]string{"--dry-run"}, "# problem.drawing: cases/pair.png, beside the run file\n"},
		{[]string{"--ssh", "./ssh", "--host", "elsewhere:2"}, "1,170: cases/pair.png: minus -1, plus 1"},
	} {
		out := runNatural(t, dir, "launcher", slices.Concat(args, c.more)...)
		if out.code != 0 || !strings.Contains(out.stdout, c.want) {
			t.Errorf("%v: exit code %d, no %q\n%s%s", c.more, out.code, c.want, out.stdout, out.stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "field.npy")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(cases, "pair.png")); err != nil {
		t.Fatal(err)
	}
	const want = `: problem.drawing "pair.png": no such file or directory, neither in "cases" beside the file that ` +
		"names it nor in the working directory\n"
	for _, program := range []string{"launcher", "jacobi-rank"} {
		if out := runNatural(t, dir, program, args...); out.code != 1 || !strings.Contains(out.stderr, program+want) {
			t.Errorf("%s: exit code %d, %q", program, out.code, out.stderr)
		}
	}
}
