package cpu

import (
	"os"
	"path/filepath"
	"testing"

	"jacobi/solver"
)

func TestPreferredDepth(t *testing.T) {
	for rows, want := range map[int]int{1: 1, 8: 1, 31: 1, 32: 2, 128: 8, 255: 15, 256: 16, 16382: 16} {
		if got := PreferredDepth(solver.Mesh{NX: 100, NY: 20000, DType: solver.Float32}, rows); got != want {
			t.Errorf("PreferredDepth with %d rows = %d, want %d", rows, got, want)
		}
	}
}

// Copies of periodic columns are made between sweeps.
func TestPeriodicColumnsHaveOneSweepAPass(t *testing.T) {
	mesh := solver.Mesh{NX: 100, NY: 2000, DType: solver.Float32,
		Walls: solver.Walls{Left: solver.Periodic, Right: solver.Periodic}}
	if depth, sweeps := PreferredDepth(mesh, 1998), MaxSweeps(mesh); depth != 1 || sweeps != 1 {
		t.Errorf("preferred depth %d, at most %d sweeps, want 1 and 1", depth, sweeps)
	}
}

func TestSecondLevelCache(t *testing.T) {
	dir := t.TempDir()
	if got := secondLevelCache(dir); got != defaultCache {
		t.Errorf("without any description: %d bytes, want %d", got, defaultCache)
	}
	for name, files := range map[string][2]string{"index0": {"1\n", "48K\n"}, "index2": {"2\n", "2048K\n"},
		"index3": {"3\n", "491520K\n"}} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, file := range []string{"level", "size"} {
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(files[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := secondLevelCache(dir); got != 2<<20 {
		t.Errorf("%d bytes, want %d", got, 2<<20)
	}
}
