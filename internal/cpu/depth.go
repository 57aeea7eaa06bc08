package cpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jacobi/solver"
)

// Passes of 16 sweeps leave the memory far behind the arithmetic on every machine measured; deeper ones gain little. A
// pass repeats about depth rows at each end of what a thread sweeps, so low stripes take fewer.
const (
	deepest      = 16
	rowsPerSweep = 16
)

// PreferredDepth returns the number of sweeps in a pass, and so of rows in a halo, that is fast for a mesh whose lowest
// stripe has minRows rows.
func PreferredDepth(_ solver.Mesh, minRows int) int {
	return max(1, min(deepest, minRows/rowsPerSweep))
}

// defaultCache is the second-level cache to count on when the system does not say.
const defaultCache = 1 << 20

// scratchCache returns the bytes of cache that a thread's scratch may fill: half of the second level, since the rows
// that come and go pass through it too.
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
