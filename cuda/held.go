package cuda

import (
	"math"

	"jacobi/solver"
)

// heldWarps describes the warps of a kernel in sweep_held.cu: the rows of a warp, the largest number of warps in a
// block, and the cost of a sweep relative to the other kernels for the type, which is a fixed part and a part for each
// warp of a scheduler. The costs were fitted to an H200; see docs/notebook/gpu-registers.md.
type heldWarps struct {
	rows, maxWarps int
	fixed, one     float64
}

var (
	heldFloat32 = []heldWarps{
		{rows: 24, maxWarps: 16, fixed: 600, one: 735},
		{rows: 16, maxWarps: 20, fixed: 330, one: 510},
	}
	heldFloat64 = []heldWarps{{rows: 8, maxWarps: 16, fixed: 200, one: 500}}
)

const (
	heldSchedulers = 4    // of a multiprocessor
	heldOuter      = 1.17 // cost of a tile with fixed columns, relative to other tiles
)

// held describes the kernel of sweep_held.cu for kinds[kind] and values of the given size in bytes. It does a pass if
// all its tiles run at once and no other of the kinds is faster.
func held(name string, size int, kinds []heldWarps, kind int) shape {
	divide := func(c capacity, p *pass) (division, bool) {
		if p.sweeps < 2 {
			return division{}, false
		}
		best, chosen := tiling{cost: math.Inf(1)}, -1
		for i, w := range kinds {
			if t := w.tile(size, c.sms, p); t.cost < best.cost && t.division.shared <= c.shared {
				best, chosen = t, i
			}
		}
		best.cut = cut{innerRows: int32(best.inner), outerRows: int32(best.outer)}
		return best.division, chosen == kind
	}
	return shape{name: name, maxThreads: warpSize * kinds[kind].maxWarps, maxSweeps: 16, divide: divide}
}

// tiling is a division of a mesh into tiles, at most one for each multiprocessor.
type tiling struct {
	division
	inner, outer int     // rows of a tile, without its overlap, in inner and outer columns of tiles
	cost         float64 // cost of a sweep; infinite if the mesh does not fit
}

// tile divides a pass among blocks of such warps. The warps of a scheduler take turns, so a tile costs as much as its
// busiest scheduler. Of tilings with equal cost, it returns the one with the fewest rows in a tile.
func (w heldWarps) tile(size, sms int, p *pass) tiling {
	const columns = solver.GroupCols // of a lane
	sweeps, groups := int(p.sweeps), p.groups()
	step := (warpSize - 2*((sweeps+columns-1)/columns)) * columns
	across := 1 + (max(int(p.nx)-warpSize*columns, 0)+step-1)/step
	outers := min(across, 2)
	overlap := (sweeps+solver.GroupRows-1)&^(solver.GroupRows-1) + sweeps
	height := func(tiles int) int { return (groups + tiles - 1) / tiles * solver.GroupRows }
	warps := func(rows int) int { return (rows + overlap + w.rows - 1) / w.rows }
	cost := func(rows int) float64 {
		if warps(rows) > w.maxWarps {
			return math.Inf(1)
		}
		return w.fixed + w.one*float64((warps(rows)+heldSchedulers-1)/heldSchedulers) + float64(warps(rows))
	}
	best := tiling{cost: math.Inf(1)}
	for inner := 1; inner <= groups && (across-outers)*inner+outers <= sms; inner++ {
		outer := min((sms-(across-outers)*inner)/outers, groups)
		t := tiling{inner: height(inner), outer: height(outer)}
		if across == outers {
			t.inner = t.outer // there are no inner columns
		}
		if t.cost = max(cost(t.inner), heldOuter*cost(t.outer)); t.cost < best.cost {
			best = t
		}
		if across == outers {
			break
		}
	}
	if math.IsInf(best.cost, 1) {
		return best
	}
	count := func(rows int) int { return (groups*solver.GroupRows + rows - 1) / rows }
	n := warps(max(best.inner, best.outer))
	best.division = division{
		blocks:  outers*count(best.outer) + (across-outers)*count(best.inner),
		threads: warpSize * n,
		shared:  (2*2*(n+2)*columns+sweeps*n*w.rows/solver.GroupRows)*warpSize*size + n*sumBytes,
	}
	return best
}
