package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withProbes is a problem with probes on the boundary, inside, and along lines across all stripes.
var withProbes = []string{"grid.nx=97", "grid.ny=131", "grid.dtype=float64", "solver.tolerance=0",
	"solver.max_iterations=70", "output.field=", "output.picture=", "output.probes_every=10 sweeps",
	"output.probes=wall=[0,0]; end=(1,1); row=(0,0.5)..(1,0.5)/3; column=[48,0]..[48,130]"}

func probesOf(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "probes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The file of the probes is the same for any ranks, transport and depth, far away, and after a restart.
func TestProbes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want string
	for i, c := range []struct {
		np       string
		settings []string
	}{
		{"1", []string{"halo.depth=1"}}, {"2", []string{"halo.transport=p2p", "halo.depth=16"}},
		{"3", []string{"halo.transport=nats", "halo.depth=7"}}, {"3", []string{"halo.transport=p2p", "halo.depth=8"}},
	} {
		args := append(append(withProbes, c.settings...), fmt.Sprintf("output.dir=%d", i))
		end := run(t, dir, "launcher", append(set(args...), "-np", c.np)...)
		if end.code != 0 {
			t.Fatalf("exit code %d\n%s", end.code, end.stderr)
		}
		got := probesOf(t, filepath.Join(dir, fmt.Sprint(i)))
		if want == "" {
			want = got
		}
		const lines = 1 + 8*(1+1+3+131)
		if got != want || strings.Count(got, "\n") != lines {
			t.Errorf("np %s, %v: %d lines, want %d; same bits: %v", c.np, c.settings, strings.Count(got, "\n"), lines,
				got == want)
		}
		for _, said := range []string{
			fmt.Sprintf("Probes         8 samples of 136 points in %d/probes.csv, every 10 sweeps\n", i),
			fmt.Sprintf("  Files          %[1]d/history.csv\n                 %[1]d/report.json\n"+
				"                 %[1]d/probes.csv\n\n", i),
		} {
			if !strings.Contains(end.stdout, said) {
				t.Errorf("no %q in\n%s", said, end.stdout)
			}
		}
	}
	saved := append(withProbes, "checkpoint.every=20 sweeps", "checkpoint.dir=saved", "solver.max_iterations=45")
	for _, args := range [][]string{append(set(saved...), "-np", "3"),
		append(set(withProbes...), "-np", "2", "--resume", "saved")} {
		if end := run(t, dir, "launcher", args...); end.code != 0 {
			t.Fatalf("exit code %d\n%s", end.code, end.stderr)
		}
	}
	if got := probesOf(t, filepath.Join(dir, "out")); got != want {
		t.Errorf("after a restart:\n%s\nwant\n%s", got, want)
	}
	u, here := startServer(t), t.TempDir()
	for range 2 {
		startAgent(t, t.TempDir(), u, "--slots", "1")
	}
	end := run(t, here, "launcher", onNodes(u, append(set(withProbes...), "-np", "2")...)...)
	if got := probesOf(t, filepath.Join(here, "out")); end.code != 0 || got != want {
		t.Errorf("far away: exit code %d, same bits: %v\n%s", end.code, got == want, end.stderr)
	}
}

// NumPy reads the file of the probes and finds the values of the fields of the series, bit by bit.
func TestProbesForNumPy(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	for _, dtype := range []string{"float32", "float64"} {
		dir := t.TempDir()
		end := run(t, dir, "launcher", append(set(append(withProbes, "output.field=field.npy", "grid.dtype="+dtype,
			"output.probes_every=", "output.every=35")...), "-np", "3")...)
		if end.code != 0 {
			t.Fatalf("exit code %d\n%s", end.code, end.stderr)
		}
		const script = `
import sys, numpy as np
rows = np.genfromtxt(sys.argv[1] + "/probes.csv", delimiter=",", names=True, dtype=None, encoding="utf8")
same = 0
for r in rows:
    u = np.load(sys.argv[1] + "/field-%09d.npy" % r["iteration"], mmap_mode="r")
    same += u[r["iy"], r["ix"]] == u.dtype.type(r["value"]) and r["x"] == r["ix"] / 96
print(len(rows), same, sorted(set(rows["iteration"].tolist())), sorted(set(rows["probe"].tolist())))`
		got := pythonSays(t, python, script, filepath.Join(dir, "out"))
		if want := "408 408 [0, 35, 70] ['column', 'end', 'row', 'wall']"; got != want {
			t.Errorf("%s: NumPy says %s, want %s", dtype, got, want)
		}
	}
}

// Values that cannot be written are a warning.
func TestProbesWithAFault(t *testing.T) {
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(append(withProbes, "output.probes_every=")...), "-np", "2")...)
	if out.code != 1 || !strings.Contains(out.stderr, "output.probes_every or output.every has to say when") {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
	_, small := smallDisk(t, "200k")
	fill(t, small)
	if err := os.Truncate(filepath.Join(small, "filler"), 200<<10-24<<10); err != nil {
		t.Fatal(err)
	}
	end := run(t, dir, "launcher", append(set(append(withProbes, "output.history=", "output.report=",
		"output.dir="+small)...), "-np", "2")...)
	if end.code != 0 || !strings.Contains(end.stderr, "probes.csv: values are not written, the run goes on: ") {
		t.Errorf("exit code %d\n%s", end.code, end.stderr)
	}
}
