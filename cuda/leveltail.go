package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// tailArg is the argument of the kernel tail: struct Tail in kernels/multigrid_tail.cuh.
type tailArg struct {
	weights, outside, b, u driver.DevicePtr
	factors                factorsArg
	count, values          int32
	levels                 [tailLevels]tailLevel
}

// tailLevel is struct TailLevel.
type tailLevel struct {
	at, around, restricting, correcting driver.DevicePtr
	h, q, gain                          float32
	points                              int32
}

const (
	tailThreads = 1024
	tailPoints  = 5 * tailThreads // of the first level that a block does, at most
	tailLevels  = 15              // in one argument
	tailValues  = 8192            // of all its levels in shared memory
	tailShared  = 3 * 4 * tailValues
)

// GatheredPoints takes the place of multigrid.AgglomeratedPoints where all ranks write into each other's memory. Then a
// gather costs less than dividing the larger levels saves.
const GatheredPoints = 1100 * 1100

// tailStart returns the first level that the tail does: the coarsest one, or one from which on all fit into the shared
// memory of a block.
func tailStart(l multigrid.Layout) int {
	start, values := len(l.Plan.Levels)-1, 0
	for i := start; i >= max(l.Agglomerated, len(l.Plan.Levels)-tailLevels); i-- {
		n := l.Plan.Levels[i].Mesh.NX * l.Plan.Levels[i].Mesh.NY
		values += n
		if n > tailPoints || values > tailValues {
			break
		}
		start = i
	}
	return start
}

// valuesOf returns the values of an array of all levels, an even number.
func valuesOf(levels []multigrid.Level) (n int) {
	for _, l := range levels {
		n += l.Mesh.NX * l.Mesh.NY
	}
	return n + n%2
}

// openTail sets up the kernel for the levels from first on.
func (v *Levels) openTail(first int) (c call, err error) {
	f, err := v.layout.NewFactors(v.layout.Plan.CoarsestPoint)
	if err != nil {
		return c, err
	}
	if first+1 == len(v.layout.Plan.Levels) {
		if c, err = v.openCoarsest(); err != nil {
			return c, err
		}
		return c, v.uploadFactors(f)
	}
	levels := v.layout.Plan.Levels[first:]
	top := v.levels[first]
	a := &tailArg{b: top.b.base, u: top.u.base, count: int32(len(levels)), values: int32(valuesOf(levels))}
	all, u := newTailTables(v.layout, first), uploads{dev: v.dev}
	for i, l := range levels {
		t := &a.levels[i]
		*t = tailLevel{h: float32(l.Scale), q: float32(l.Blend), gain: float32(l.Gain), points: int32(len(all[i].at))}
		all[i].upload(&u, t)
	}
	if a.outside, a.weights = table(&u, all[0].outside(top)), table(&u, tailWeights()); u.err != nil {
		return c, u.err
	}
	if a.factors, err = v.newFactors(tailShared - 3*4*int(a.values)); err != nil {
		return c, err
	}
	if err := v.uploadFactors(f); err != nil {
		return c, err
	}
	if tailShared > v.dev.gpu.SharedBytes {
		return c, fmt.Errorf("kernel tail: %d bytes of shared memory: the GPU has %d", tailShared,
			v.dev.gpu.SharedBytes)
	}
	if c, err = newCall(v.dev.module, "tail", a, tailThreads); err != nil {
		return c, err
	}
	c.blocks, c.shared = 1, tailShared
	return c, c.f.SetDynamicShared(tailShared)
}

// tailWeights returns the weights of the sweeps on the way down and on the way up.
func tailWeights() []float32 {
	down := multigrid.Weights()
	up := down
	slices.Reverse(up[:])
	var all []float32
	for _, w := range slices.Concat(down[:], up[:]) {
		all = append(all, float32(w))
	}
	return all
}

// tailMemory returns the bytes of GPU memory that the tail from level first on takes besides the arrays of that level.
func tailMemory(l multigrid.Layout, first int) int64 {
	if first+1 == len(l.Plan.Levels) {
		return coarsestBytes(l)
	}
	bytes := 4*int64(len(tailWeights())) + l.FactorBytes()
	for i, t := range newTailTables(l, first) {
		bytes += t.bytes()
		if i == 0 {
			bytes += int64(unsafe.Sizeof(t.at[0])) * int64(len(t.at))
		}
	}
	return bytes
}

// tailTables are the tables of a level of the tail, by the points that sweeps change: row by row, and on the coarsest
// level by block and slot.
type tailTables struct {
	mesh        solver.Mesh
	first       int32   // place of point 0 of row 0
	at          []int32 // first + y*NX + x
	around      []around
	restricting []restricting // nil on the first level
	correcting  []correcting  // nil on the coarsest level
}

// around is struct Around in kernels/multigrid_tail.cuh.
type around struct{ west, east, north, south int32 }

// restricting is struct Restricting.
type restricting struct {
	rows, columns [multigrid.Taps]int32
	wy, wx        [multigrid.Taps]float32
}

// correcting is struct Correcting.
type correcting struct {
	nw, ne, sw, se int32
	wy, wx         float32
}

// newTailTables returns the tables of the levels from first on.
func newTailTables(l multigrid.Layout, first int) []tailTables {
	levels := l.Plan.Levels[first:]
	tables, place := make([]tailTables, len(levels)), 0
	for i, level := range levels {
		t := newTailLevel(level.Mesh, place, sweptPoints(l, first+i))
		if i > 0 {
			t.restrict(levels[i-1], &tables[i-1])
		}
		place += level.Mesh.NX * level.Mesh.NY
		if i+1 < len(levels) {
			t.correct(level, levels[i+1].Mesh, place)
		}
		tables[i] = *t
	}
	return tables
}

// spans returns the rows and the columns of a level that one GPU holds as a whole.
func spans(m solver.Mesh) (rows, columns span) {
	return newSpan(m.NY, m.Walls.Top, m.Walls.Bottom), newSpan(m.NX, m.Walls.Left, m.Walls.Right)
}

// sweptPoints returns the columns and rows of the points of a level in the order of its tables.
func sweptPoints(l multigrid.Layout, level int) (points [][2]int) {
	add := func(x, y int) { points = append(points, [2]int{x, y}) }
	if level+1 == len(l.Plan.Levels) {
		b := l.Blocking()
		for i := range b.Blocks * b.Slots {
			add(b.Point(0, i))
		}
		return points
	}
	m := l.Plan.Levels[level].Mesh
	lo, hi := m.InteriorColumns()
	for y := m.Interior().Lo; y < m.Interior().Hi; y++ {
		for x := lo; x < hi; x++ {
			add(x, y)
		}
	}
	return points
}

// newTailLevel returns the tables of a level without the transfers.
func newTailLevel(m solver.Mesh, first int, points [][2]int) *tailTables {
	t := &tailTables{mesh: m, first: int32(first)}
	rows, columns := spans(m)
	for _, p := range points {
		x, y := p[0], p[1]
		row, north, south := first+y*m.NX, first+rows.held(y-1)*m.NX, first+rows.held(y+1)*m.NX
		t.at = append(t.at, int32(row+x))
		t.around = append(t.around, around{int32(row + columns.held(x-1)), int32(row + columns.held(x+1)),
			int32(north + x), int32(south + x)})
	}
	return t
}

// point returns the row and the column of a place.
func (t *tailTables) point(at int32) (row, column int) {
	i := int(at - t.first)
	return i / t.mesh.NX, i % t.mesh.NX
}

// restrict sets the restriction from the finer level.
func (t *tailTables) restrict(fine multigrid.Level, from *tailTables) {
	wy, wx := tapsOf(fine.Y, fine.Mesh.NY, t.mesh.NY), tapsOf(fine.X, fine.Mesh.NX, t.mesh.NX)
	rows, columns := spans(fine.Mesh)
	for _, at := range t.at {
		row, column := t.point(at)
		ty, tx := wy[row], wx[column]
		r := restricting{wy: ty.w, wx: tx.w}
		for k := range multigrid.Taps {
			r.rows[k] = from.first + int32(rows.held(int(ty.first)+k)*fine.Mesh.NX)
			r.columns[k] = int32(columns.held(int(tx.first) + k))
		}
		t.restricting = append(t.restricting, r)
	}
}

// correct sets the interpolation from the coarser level, whose first value has place first.
func (t *tailTables) correct(l multigrid.Level, coarse solver.Mesh, first int) {
	by, bx := betweenPoints(l.Y, l.Mesh.NY), betweenPoints(l.X, l.Mesh.NX)
	rows, columns := spans(coarse)
	for _, at := range t.at {
		row, column := t.point(at)
		y, x := by[row+beyond], bx[column+beyond]
		north, south := first+rows.held(int(y.coarse))*coarse.NX, first+rows.held(int(y.coarse)+1)*coarse.NX
		west, east := columns.held(int(x.coarse)), columns.held(int(x.coarse)+1)
		t.correcting = append(t.correcting, correcting{nw: int32(north + west), ne: int32(north + east),
			sw: int32(south + west), se: int32(south + east), wy: y.weight, wx: x.weight})
	}
}

// upload copies the tables to the device and sets them in l.
func (t *tailTables) upload(u *uploads, l *tailLevel) {
	l.at, l.around = table(u, t.at), table(u, t.around)
	l.restricting, l.correcting = table(u, t.restricting), table(u, t.correcting)
}

// bytes returns the memory that upload allocates.
func (t *tailTables) bytes() int64 {
	n := len(t.at)*int(unsafe.Sizeof(t.at[0])) + len(t.around)*int(unsafe.Sizeof(t.around[0]))
	n += len(t.restricting)*int(unsafe.Sizeof(restricting{})) + len(t.correcting)*int(unsafe.Sizeof(correcting{}))
	return int64(n)
}

// outside returns where the points lie in an array of the level l, in values of float32.
func (t *tailTables) outside(l *level) []int32 {
	places := make([]int32, len(t.at))
	for i, at := range t.at {
		row, column := t.point(at)
		places[i] = int32(row*l.u.pitch/4 + column)
	}
	return places
}
