package cuda

import (
	"unsafe"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// tailTables are the tables of a level of the tail, by the points that sweeps change, row by row.
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
		t := newTailLevel(level.Mesh, fixedOf(l, first+i), place)
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

// fixedOf returns the fixed points of a level; nil if there are none inside the mesh.
func fixedOf(l multigrid.Layout, level int) multigrid.FixedRuns {
	if l.Fixed == nil {
		return nil
	}
	return l.Fixed[level]
}

// spans returns the rows and the columns of a level that one GPU holds as a whole.
func spans(m solver.Mesh) (rows, columns span) {
	return newSpan(m.NY, m.Walls.Top, m.Walls.Bottom), newSpan(m.NX, m.Walls.Left, m.Walls.Right)
}

// newTailLevel returns the tables of a level without the transfers.
func newTailLevel(m solver.Mesh, fixed multigrid.FixedRuns, first int) *tailTables {
	t := &tailTables{mesh: m, first: int32(first)}
	rows, columns := spans(m)
	top, bottom := rows.regular()
	left, right := columns.regular()
	for y := int(top); y < int(bottom); y++ {
		row := int32(first + y*m.NX)
		north, south := int32(first+rows.held(y-1)*m.NX), int32(first+rows.held(y+1)*m.NX)
		var runs []multigrid.Columns
		if fixed != nil {
			runs = fixed[y]
		}
		for x := int(left); x < int(right); x++ {
			for len(runs) > 0 && runs[0].Hi <= x {
				runs = runs[1:]
			}
			if len(runs) > 0 && runs[0].Lo <= x {
				continue
			}
			t.at = append(t.at, row+int32(x))
			west, east := int32(columns.held(x-1)), int32(columns.held(x+1))
			t.around = append(t.around, around{row + west, row + east, north + int32(x), south + int32(x)})
		}
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
func (t *tailTables) upload(d *device, l *tailLevel) (err error) {
	if l.at, err = uploadTable(d, t.at); err != nil {
		return err
	}
	if l.around, err = uploadTable(d, t.around); err != nil {
		return err
	}
	if l.restricting, err = uploadTable(d, t.restricting); err != nil {
		return err
	}
	l.correcting, err = uploadTable(d, t.correcting)
	return err
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
