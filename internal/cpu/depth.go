package cpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jacobi/solver"
)

// PreferredDepth returns the number of sweeps in a pass, and so of rows in a halo, that is fast for a mesh whose lowest
// stripe has minRows rows.
func PreferredDepth(mesh solver.Mesh, minRows int) int {
	return max(1, min(8, minRows))
}

// defaultCache is the second-level cache to count on when the system does not say.
const defaultCache = 1 << 20

// scratchCache returns the bytes of cache that a thread's scratch may fill: most of the second level, of which the
// rows that come and go need some.
func scratchCache() int { return secondLevelCache("/sys/devices/system/cpu/cpu0/cache") / 4 * 3 }

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
