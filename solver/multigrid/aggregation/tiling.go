// Package aggregation has levels for equations whose coefficients are hard for levels of meshes: each unknown of a
// level stands for a set of unknowns of the next finer one, chosen by the strength of their faces (A. Napov, Y. Notay,
// "An algebraic multigrid method with guaranteed convergence rate", SIAM J. Sci. Comput. 34, 2012). A set lies within
// a tile of the mesh, so nothing depends on ranks. The order of the operations here defines the bits; the
// kernels of GPUs repeat it.
//
// The equations of a level are, for its unknowns i with an excess e(i) >= 0 and faces f(i, j) = f(j, i) > 0,
//
//	r(i) = b(i) - e(i) x(i) + sum over j of f(i, j) (x(j) - x(i))    d(i) = e(i) + sum over j of f(i, j)
//
// Each operation is rounded once, none is fused, and sums run in ascending order.
package aggregation

import "jacobi/solver"

// Shape is the columns and rows of a tile of points, and where the first one begins.
type Shape struct{ Columns, Rows, FirstColumn, FirstRow int }

// Shape returns the shape of the tiles.
func (t Tiling) Shape() Shape {
	row, column := t.origin()
	return Shape{Columns: t.shape.columns, Rows: t.shape.rows, FirstColumn: column, FirstRow: row}
}

// Tiling divides the interior points of a mesh into tiles, of which each set of points has its own. A tile has 2 x 2
// points, or 4 in one direction where their faces are the larger ones by a factor of at least 4. The first tile begins
// with point 0 of a direction, or with point 1 if that is periodic, where the last tile is cut at the seam, or if the
// tile has one point in the direction and point 0 is no unknown.
type Tiling struct {
	mesh  solver.Mesh
	ratio float64
	shape shape // of the tiles of points
}

// shape is the columns and rows of a tile: of points, or of tiles of the next finer level.
type shape struct{ columns, rows int }

// NewTiling returns the tiling of a mesh whose equations have the given ratio of faces, rows by columns: (hx/hy)^2.
func NewTiling(mesh solver.Mesh, ratio float64) Tiling {
	s, _ := shapeOf(ratio)
	return Tiling{mesh: mesh, ratio: ratio, shape: s}
}

// shapeOf returns the shape of the tiles of a level with the given ratio of faces, and the ratio of the next level.
func shapeOf(ratio float64) (s shape, next float64) {
	switch {
	case ratio >= 4:
		return shape{1, 4}, ratio / 4
	case ratio <= 0.25:
		return shape{4, 1}, ratio * 4
	}
	return shape{2, 2}, ratio
}

// origin returns the first row and the first column of the first tile.
func (t Tiling) origin() (row, column int) {
	row = t.mesh.Interior().Lo
	column, _ = t.mesh.InteriorColumns()
	if !t.mesh.PeriodicRows() {
		row -= row % t.shape.rows
	}
	if !t.mesh.PeriodicColumns() {
		column -= column % t.shape.columns
	}
	return row, column
}

// TileRows returns the number of rows of tiles.
func (t Tiling) TileRows() int {
	row, _ := t.origin()
	return (t.mesh.Interior().Hi - row + t.shape.rows - 1) / t.shape.rows
}

// tileColumns returns the number of columns of tiles.
func (t Tiling) tileColumns() int {
	_, column := t.origin()
	_, hi := t.mesh.InteriorColumns()
	return (hi - column + t.shape.columns - 1) / t.shape.columns
}

// TileRow returns the row of tiles that holds row y of the mesh, which is an interior one, or one beyond the ends
// of a mesh with periodic rows; rows of tiles then go on beyond the ends alike, below 0 and from TileRows on.
func (t Tiling) TileRow(y int) int {
	row, _ := t.origin()
	if !t.mesh.PeriodicRows() {
		return (y - row) / t.shape.rows
	}
	round := solver.FloorDiv(y-row, t.mesh.NY-2)
	return round*t.TileRows() + (y-row-round*(t.mesh.NY-2))/t.shape.rows
}

// Wrapped returns the row of tiles, of 0 to TileRows-1, that is the given one, which may lie beyond the ends.
func (t Tiling) Wrapped(tileRow int) int {
	return tileRow - solver.FloorDiv(tileRow, t.TileRows())*t.TileRows()
}

// Rows returns the interior rows of the mesh that a row of tiles holds, beyond the ends if it lies there.
func (t Tiling) Rows(tileRow int) solver.Stripe {
	first, _ := t.origin()
	in, round := t.mesh.Interior(), solver.FloorDiv(tileRow, t.TileRows())
	lo := first + t.Wrapped(tileRow)*t.shape.rows
	s := solver.Stripe{Lo: max(lo, in.Lo), Hi: min(lo+t.shape.rows, in.Hi)}
	shift := round * (t.mesh.NY - 2) // 0 but with periodic rows
	return solver.Stripe{Lo: s.Lo + shift, Hi: s.Hi + shift}
}

// Owned returns the rows of tiles whose first row lies in the given rows of the mesh.
func (t Tiling) Owned(rows solver.Stripe) solver.Stripe {
	from := func(y int) int {
		if y >= t.mesh.Interior().Hi {
			return t.TileRows()
		}
		k := t.TileRow(y)
		if t.Rows(k).Lo < y {
			k++
		}
		return k
	}
	return solver.Stripe{Lo: from(rows.Lo), Hi: from(rows.Hi)}
}

// Covering returns the rows of tiles that hold one of the given rows of the mesh. Rows beyond the ends count only where
// the mesh has periodic rows.
func (t Tiling) Covering(rows solver.Stripe) solver.Stripe {
	if !t.mesh.PeriodicRows() {
		in := t.mesh.Interior()
		rows = solver.Stripe{Lo: max(rows.Lo, in.Lo), Hi: min(rows.Hi, in.Hi)}
	}
	if rows.Rows() <= 0 {
		return solver.Stripe{}
	}
	return solver.Stripe{Lo: t.TileRow(rows.Lo), Hi: t.TileRow(rows.Hi-1) + 1}
}
