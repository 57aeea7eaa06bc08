package cpu

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jacobi/solver"
)

// With 16 sweeps a pass, arithmetic rather than memory limited the speed on every machine measured; deeper passes
// gained little. A pass repeats about as many rows as it has sweeps at each end of a thread's rows, so stripes of few
// rows get fewer sweeps.
const (
	maxDepth     = 16
	rowsPerSweep = 16
)

// minMaxSweeps is the number of sweeps that a pass may always have. A deeper halo allows deeper passes.
const minMaxSweeps = 32

// MaxSweeps returns the largest number of sweeps in a pass on a mesh. Periodic columns are copied between sweeps, so
// their passes have one sweep; others have no limit but the depth of their halos.
func MaxSweeps(m solver.Mesh) int {
	if m.PeriodicColumns() {
		return 1
	}
	return math.MaxInt32
}

// PreferredDepth returns a fast number of sweeps in a pass, and so of rows in a halo, for a mesh whose smallest stripe
// has minRows rows.
func PreferredDepth(m solver.Mesh, minRows int) int {
	return max(1, min(maxDepth, minRows/rowsPerSweep, MaxSweeps(m)))
}

// defaultCache is the assumed size of the second-level cache where the system does not tell it.
const defaultCache = 1 << 20

// scratchCache returns the bytes of cache that a thread's scratch may fill: half of the second level, since the rows
// read and written pass through it too.
func scratchCache() int { return secondLevelCache("/sys/devices/system/cpu/cpu0/cache") / 2 }

// secondLevelCache reads the size of the second-level cache as Linux describes it under dir.
func secondLevelCache(dir string) int {
	levels, err := filepath.Glob(filepath.Join(dir, "index*", "level"))
	if err != nil {
		return defaultCache
	}
	for _, level := range levels {
		if text, err := os.ReadFile(level); err != nil || strings.TrimSpace(string(text)) != "2" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(level), "size"))
		if err != nil {
			continue
		}
		if kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), "K")); err == nil && kib > 0 {
			return kib << 10
		}
	}
	return defaultCache
}
