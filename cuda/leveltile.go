package cuda

import "jacobi/solver"

// The kernels in tiles (kernels/multigrid_tile.cuh) take levels of up to this many points: those on which they are
// faster than the kernels through which rows stream.
const (
	tilePoints64    = 1 << 20
	tilePoints32    = 1 << 21
	tilePointsSmall = 3 << 17 // of tile_*_small_f32
)

// tileKind returns the suffix in the names of the kernels in tiles for a level; kind is the suffix of its other
// kernels. It returns "" for a level that is too large.
func tileKind(kind string, l *level) string {
	points := l.Mesh.NX * l.left().Rows()
	switch {
	case kind == "f32" && points <= tilePointsSmall:
		return "small_f32"
	case kind == "f32" && points <= tilePoints32, kind != "f32" && points <= tilePoints64:
		return kind
	}
	return ""
}

// above and below return how many rows above and below those that a tile makes it needs: TileKind::kAbove and kBelow.
func (s smoothShape) above() int {
	switch {
	case s.up:
		return 4
	case !s.zero:
		return solver.GroupRows
	}
	return 5
}

func (s smoothShape) below() int {
	switch {
	case s.up:
		return 4
	case !s.zero:
		return 7
	}
	return 6
}

// tileBytes returns the shared memory of a tile: TileKind::kBytes.
func (s smoothShape) tileBytes() int {
	row := warpSize * s.columns
	edges, defects, n := 2*s.warps*row*s.size, 0, 0
	if !s.up {
		defects = s.warps * s.rows * row * 4
	}
	if s.source && s.size == 8 {
		n += s.warps * s.rows * row * s.size
	}
	if !s.up && !s.zero {
		n += s.warps * sumBytes
	}
	return n + edges + max(edges, defects)
}

// tiles divides rows of a level of nx columns, in pieces of align, among tiles.
func (k *smoothKernel) tiles(nx int, rows solver.Stripe, align int) (c levelParts) {
	c.strips = (nx + k.step() - 1) / k.step()
	most := (k.warps*k.rows - k.above() - k.below()) / align // pieces of a tile
	top := rows.Lo / align * align
	if rows.Lo < 0 {
		top -= align
	}
	pieces := (rows.Hi - top + align - 1) / align
	parts := (pieces + most - 1) / most
	c.tileRows = (pieces + parts - 1) / parts * align
	c.blocks = c.strips * parts
	return c
}
