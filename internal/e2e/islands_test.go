package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"

	"jacobi/internal/compute/problem"
)

// setupIn returns what the report in dir/out tells of the problem.
func setupIn(t *testing.T, dir string) problem.Setup {
	t.Helper()
	var r struct{ Setup problem.Setup }
	if err := json.Unmarshal([]byte(readText(t, dir, "out", "report.json")), &r); err != nil {
		t.Fatal(err)
	}
	return r.Setup
}

// An island that nothing but a screening holds is 0 where it has no source, whatever the initial field is: no coarse
// level knows of it, and the norm hardly does.
func TestAnIslandHeldByScreening(t *testing.T) {
	t.Parallel()
	for _, np := range []int{1, 3} {
		dir := t.TempDir()
		mustRun(t, dir, "launcher", onRanks(np, "grid.nx=65", "problem.preset=dirichlet", "solver.method=multigrid",
			"problem.initial=7",
			"problem.screening=1e-6", "problem.coefficient=(abs(ix-33) <= 1 and iy >= 32 and iy <= 36) ? "+
				"(ix == 33 and iy >= 33 and iy <= 35 ? 1 : 0) : 1")...)
		field := readField(t, filepath.Join(dir, "out", "field.npy"), 65, 65)
		for iy := 33; iy <= 35; iy++ {
			if v := field[65*iy+33]; v != 0 {
				t.Errorf("np %d: row %d is %v, want 0", np, iy, v)
			}
		}
	}
}

// Parts of the material that nothing fixes are left out, as the plan, the summary and the report say, also where
// nothing conducts from side to side.
func TestIslandsAreLeftOut(t *testing.T) {
	t.Parallel()
	size := []string{"grid.nx=131", "grid.ny=139", "problem.top=1"}
	for _, c := range []struct {
		keys  []string
		left  problem.Count
		apart [][2]string
	}{
		{with(size, porous...), problem.Count{Parts: 13, Points: 90}, nil},
		{with(size, "problem.bottom=0", "problem.left=neumann(0)", "problem.right=neumann(0)",
			"problem.coefficient=mod(floor(1000*abs(sin(12.9898*ix + 78.233*iy)*43.7585)), 10) < 4 ? 0 : 1"),
			problem.Count{Parts: 460, Points: 7157}, [][2]string{{"top", "bottom"}}},
	} {
		lines := fmt.Sprintf("Left out: %d parts of the material with %s points, which nothing fixes", c.left.Parts,
			humanize.Comma(c.left.Points))
		for _, pair := range c.apart {
			lines += fmt.Sprintf("\nApart: no part of the material leads from %s to %s", pair[0], pair[1])
		}
		out := mustRun(t, t.TempDir(), "launcher", append(onRanks(3, c.keys...), "--dry-run")...)
		if text := strings.ReplaceAll(out.stdout, "# ", ""); !strings.Contains(text, lines) {
			t.Errorf("the plan has no %q:\n%s", lines, out.stdout)
		}
		dir := t.TempDir()
		mustRun(t, dir, "launcher", onRanks(3, c.keys...)...)
		if s := setupIn(t, dir); s.LeftOut != c.left || !reflect.DeepEqual(s.Apart, c.apart) {
			t.Errorf("left out %+v, apart %v, want %+v, %v", s.LeftOut, s.Apart, c.left, c.apart)
		}
	}
}
