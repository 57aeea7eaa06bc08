package cuda

import (
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// level is one level of Levels: float64 on level 0, float32 on all others.
type level struct {
	multigrid.Level
	own       solver.Stripe // rows of the interior that this rank owns
	neighbour [2]bool       // by side: the rows beyond are those of another rank
	// u is the field on level 0 and the correction on all others, v is what Down leaves for Up, and b is the right-hand
	// side. Level 0 has b if there is a source.
	u, v, b field
	hasB    bool
	down    []call // of Down: from u on level 0, and from 0 on the others
	again   []call // of Down that begins with u on another level
	up      []call // of Up
}

// slack is how much kernels read beyond an array, at most.
const slack = 4096

// newLevel returns a level without memory.
func newLevel(layout multigrid.Layout, i int) *level {
	l := &level{Level: layout.Plan.Levels[i], hasB: i > 0 || layout.Values != nil || layout.Plan.Weighted}
	l.own = l.Mesh.Interior()
	if i < layout.Agglomerated {
		l.own, l.neighbour = layout.Stripes[i], layout.Neighbour
	}
	f := field{rows: solver.Stripe{Lo: 0, Hi: l.Mesh.NY}, pitch: pitchOf(l.Mesh)}
	if l.neighbour[solver.Top] {
		f.rows.Lo = l.own.Lo - multigrid.HaloDepth
	}
	if l.neighbour[solver.Bottom] {
		f.rows.Hi = l.own.Hi + multigrid.HaloDepth
	}
	l.u, l.v, l.b = f, f, f
	return l
}

// arrays returns the arrays that need memory.
func (l *level) arrays() []*field {
	if l.hasB {
		return []*field{&l.u, &l.v, &l.b}
	}
	return []*field{&l.u, &l.v}
}

// left returns the rows of v that Down leaves for Up.
func (l *level) left() solver.Stripe { return multigrid.LeftRows(l.own, l.neighbour) }

// span is struct Span in kernels/multigrid_level.cuh.
type span struct {
	lo, hi              int32
	low, high           int32
	turn                int32
	fixedLow, fixedHigh int32
}

// What a read beyond an end of a span finds.
const (
	nearest = iota
	mirror
	wrap
)

// newSpan returns the span of n points between two walls.
func newSpan(n int, low, high solver.Wall) span {
	s := span{lo: 0, hi: int32(n), fixedLow: math.MinInt32, fixedHigh: math.MaxInt32}
	switch low {
	case solver.Dirichlet:
		s.fixedLow = 0
	case solver.Neumann:
		s.low = mirror
	case solver.Periodic:
		s.lo, s.low, s.turn = 1, wrap, int32(n-2)
	}
	switch high {
	case solver.Dirichlet:
		s.fixedHigh = int32(n - 1)
	case solver.Neumann:
		s.high = mirror
	case solver.Periodic:
		s.hi, s.high = int32(n-1), wrap
	}
	return s
}

// rowSpan returns the rows of the level's arrays. Where there is a neighbour, its rows are held.
func (l *level) rowSpan() span {
	w := l.Mesh.Walls
	s := newSpan(l.Mesh.NY, w.Top, w.Bottom)
	if l.neighbour[solver.Top] {
		s.lo, s.low, s.fixedLow = int32(l.u.rows.Lo), nearest, math.MinInt32
	}
	if l.neighbour[solver.Bottom] {
		s.hi, s.high, s.fixedHigh = int32(l.u.rows.Hi), nearest, math.MaxInt32
	}
	return s
}

func (l *level) columnSpan() span { return newSpan(l.Mesh.NX, l.Mesh.Walls.Left, l.Mesh.Walls.Right) }

// regular returns the points that are held and swept.
func (s span) regular() (lo, hi int32) { return max(s.lo, addOne(s.fixedLow)), min(s.hi, s.fixedHigh) }

func addOne(i int32) int32 { return i + 1 }

// held returns the point at which a read of point i finds its value: Span.held.
func (s span) held(i int) int {
	lo, hi := int(s.lo), int(s.hi)
	for i < lo || i >= hi {
		below := i < lo
		switch {
		case below && s.low == nearest:
			return lo
		case !below && s.high == nearest:
			return hi - 1
		case below && s.low == mirror:
			i = 2*lo - i
		case !below && s.high == mirror:
			i = 2*(hi-1) - i
		case below:
			i += int(s.turn)
		default:
			i -= int(s.turn)
		}
	}
	return i
}

// beyond is the number of rows or columns beyond both ends of a mesh that tables by fine row or column have.
const beyond = 64

// restricted is struct Restricted in kernels/multigrid_level.cuh.
type restricted struct {
	near, next float32
	coarse, _  int32
}

// restrictedRows returns the restriction by fine row, from row -beyond on, for an axis of n fine points. A row that no
// sweep updates adds nothing.
func restrictedRows(a multigrid.Axis, n int) []restricted {
	rows := make([]restricted, n+2*beyond)
	s := newSpan(n, a.Low, a.High)
	for i := range rows {
		y := i - beyond
		coarse, _ := a.Between(y)
		r := restricted{coarse: int32(coarse)}
		if a.Low == solver.Periodic || inside(s, y) {
			r.near, r.next = a.Weight(coarse, y), a.Weight(coarse+1, y)
		}
		rows[i] = r
	}
	return rows
}

// inside reports whether point i is swept.
func inside(s span, i int) bool {
	lo, hi := s.regular()
	return i >= int(lo) && i < int(hi)
}

// taps is struct Taps.
type taps struct {
	w     [multigrid.Taps]float32
	first int32
	_     [3]int32
}

// tapsOf returns the restriction by coarse point, for an axis of n fine and m coarse points.
func tapsOf(a multigrid.Axis, n, m int) []taps {
	points := make([]taps, m)
	s := newSpan(n, a.Low, a.High)
	for i := range points {
		first, end := a.Around(i)
		points[i].first = int32(first)
		for j := range end - first {
			if a.Low == solver.Periodic || inside(s, first+j) {
				points[i].w[j] = a.Weight(i, first+j)
			}
		}
	}
	return points
}

// between is struct Between.
type between struct {
	coarse int32
	weight float32
}

// betweenPoints returns the interpolation by fine point, from point -beyond on, for an axis of n fine points. Beyond a
// wall it is that of the point whose value is found there.
func betweenPoints(a multigrid.Axis, n int) []between {
	points := make([]between, n+2*beyond)
	s := newSpan(n, a.Low, a.High)
	for i := range points {
		at := i - beyond
		if a.Low != solver.Periodic {
			at = s.held(at)
		}
		coarse, weight := a.Between(at)
		points[i] = between{int32(coarse), weight}
	}
	return points
}

// fixedWords returns the words of 32 bits for a row of the mesh.
func (l *level) fixedWords() int { return l.Mesh.NX/32 + 1 }

// fixedBits returns a bit for each point of the rows that the level holds, set where the point is fixed.
func (l *level) fixedBits(fixed multigrid.FixedRuns) []uint32 {
	words := l.fixedWords()
	bits := make([]uint32, words*l.u.rows.Rows())
	for i := range l.u.rows.Rows() {
		y, _ := l.Mesh.Canonical(l.u.rows.Lo + i)
		setBits(bits[i*words:], 0, fixed[y])
	}
	return bits
}

// setBits sets the bits of columns. Bit `first` is the first column of the row.
func setBits(bits []uint32, first int, columns []multigrid.Columns) {
	for _, c := range columns {
		for x := c.Lo; x < c.Hi; x++ {
			bits[(first+x)/32] |= 1 << ((first + x) % 32)
		}
	}
}

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
