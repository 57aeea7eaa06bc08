package levels

import (
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// MemoryBytes returns the bytes of the arrays that New allocates. Those of a weighted operator include what its set-up
// needs and gives back.
func MemoryBytes(l multigrid.Layout) int64 {
	size, last := l.DirectSize, len(l.Plan.Levels)-1
	if l.Plan.Weighted {
		size = l.FactorsSize
	}
	slots, blocks, bytes := size()
	bytes += 2 * 8 * int64(slots*blocks)
	for i := range l.Plan.Levels {
		arrays := 3
		if i == 0 && l.Values == nil {
			arrays = 2
		}
		bytes += int64(arrays) * arrayBytes(l, i)
		if l.Plan.Weighted {
			bytes += pointBytes(l, i, last)
		}
	}
	return bytes
}

// pointBytes returns the bytes of what points of a level have of their own.
func pointBytes(l multigrid.Layout, level, last int) (bytes int64) {
	switch {
	case level == 0:
		bytes = 4 * arrayBytes(l, level)
	case level < last:
		bytes = 5 * arrayBytes(l, level)
	}
	if level > 0 {
		bytes += int64(len(equations{}.arrays)) * 2 * arrayBytes(l, level)
	}
	if level < last {
		halves := 2 * parts // of rows of weights by row
		if v := l.Plan.Levels[level]; v.HalveY.Fine != v.HalveY.Coarse {
			halves += parts
		}
		columns := stride(l.Plan.Levels[level+1].Mesh.NX)
		bytes += int64(halves) * int64(heldRows(l, level)) / 2 * int64(columns) * int64(solver.Float32.Size())
	}
	return bytes
}

// arrayBytes returns the bytes of an array of a level.
func arrayBytes(l multigrid.Layout, level int) int64 {
	m := l.Plan.Levels[level].Mesh
	return int64(heldRows(l, level)) * int64(stride(m.NX)) * int64(m.DType.Size())
}

// heldRows returns the rows of an array of a level.
func heldRows(l multigrid.Layout, level int) int {
	rows := l.Plan.Levels[level].Mesh.NY
	if level < len(l.Stripes) && (l.Neighbour[solver.Top] || l.Neighbour[solver.Bottom]) {
		rows = min(rows, l.Stripes[level].Rows()+2*multigrid.HaloDepth)
	}
	return rows
}
