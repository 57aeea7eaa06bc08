package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
)

// An animation is the same for any ranks, transport and depth, and Pillow reads its frames, as GIF and as PNG: one for
// each sample and one for the end.
func TestAnimation(t *testing.T) {
	t.Parallel()
	python := needPython(t, "PIL")
	dir := t.TempDir()
	keys := []string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0", "solver.max_iterations=75", "output.field=",
		"output.picture=", "output.animation_every=10 sweeps"}
	const script = `
import sys
from PIL import Image
im = Image.open(sys.argv[1])
frames, shown = set(), []
for i in range(im.n_frames):
    im.seek(i)
    frames.add(im.convert("RGB").tobytes())
    shown.append(int(im.info["duration"]))
print(im.format, im.size, len(frames), shown, im.info["loop"])`
	for name, want := range map[string]string{
		"field.gif": "GIF (942, 1137) 9 [100, 100, 100, 100, 100, 100, 100, 100, 2000] 0",
		"field.png": "PNG (942, 1137) 9 [100, 100, 100, 100, 100, 100, 100, 100, 2000] 0",
	} {
		sum := ""
		for i, c := range []struct {
			np       string
			settings []string
		}{
			{"1", []string{"halo.depth=1"}}, {"2", []string{"halo.transport=p2p", "halo.depth=16"}},
			{"3", []string{"halo.transport=nats", "halo.depth=7"}},
		} {
			out := fmt.Sprint(name, i)
			args := append(append(keys, c.settings...), "output.dir="+out, "output.animation="+name)
			end := run(t, dir, "launcher", append(set(args...), "-np", c.np)...)
			if end.code != 0 {
				t.Fatalf("exit code %d\n%s", end.code, end.stderr)
			}
			got := rowsOf(t, filepath.Join(dir, out, name), 0)
			if sum == "" {
				sum = got
			}
			if got != sum {
				t.Errorf("%s, np %s, %v: %s, want %s", name, c.np, c.settings, got, sum)
			}
		}
		if got := pythonSays(t, python, script, filepath.Join(dir, name+"0", name)); got != want {
			t.Errorf("Pillow says %s, want %s", got, want)
		}
	}
}
