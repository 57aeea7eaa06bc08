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
	const want = `: problem.drawing "pair.png": no such file or directory; names in the file were looked for in ` +
		`"cases", too` + "\n"
	for _, program := range []string{"launcher", "jacobi-rank"} {
		if out := runNatural(t, dir, program, args...); out.code != 1 || !strings.Contains(out.stderr, program+want) {
			t.Errorf("%s: exit code %d, %q", program, out.code, out.stderr)
		}
	}
}

// A drawing beside a run file without grid.nx and grid.ny has a point for each of its pixels, for the launcher and for
// a rank that starts without one.
func TestPointsOfADrawing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drawing, err := filepath.Abs("../../configs/pair.png") // of 257 x 129 pixels
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "cases"), 0o755)
	}
	if err == nil {
		err = os.Symlink(drawing, filepath.Join(dir, "cases", "pair.png"))
	}
	const text = `{"problem": {"drawing": "pair.png", "colours": "#b87333 value=1; #1565c0 value=-1; #ffffff"}}`
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cases", "pair.json"), []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for program, np := range map[string]string{"launcher": "-np=2", "jacobi-rank": "--set=run.ranks=1"} {
		out := runNatural(t, dir, program, "--config", "cases/pair.json", np)
		if out.code != 0 || !strings.Contains(out.stdout, "  Mesh           257 x 129, float64\n") {
			t.Errorf("%s: exit code %d\n%s%s", program, out.code, out.stdout, out.stderr)
		}
	}
}
