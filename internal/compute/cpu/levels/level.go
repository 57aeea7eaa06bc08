package levels

import (
	"slices"
	"sync"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// level is one level of a device. Its values are float64 on level 0 and float32 on all others.
type level[F float] struct {
	multigrid.Level
	own       solver.Stripe // rows of the interior that this rank owns
	neighbour [2]bool       // by side: the level goes on beyond the stripe, in another rank's rows
	whole     bool          // this rank holds the whole level
	// u is the field on level 0 and the correction on all others. v is what Down leaves for Up.
	u, v, b array[F]
	h, q    F
	points  *couplings[F] // those of a weighted operator; nil for one with h and q
	halves  *halves       // the transfers of a weighted operator
	// aggregates, if there are any, take their place on level 0.
	aggregates *aggregates
	weights    [multigrid.SmootherSweeps]F
	scale      F // of the correction from the next level; the defect of this one is divided by it
	columns    *columns
	rows       *slopes // the restriction between rows
	pipes      []*pipe[F]
	arrays     int // that newArrayOf has allocated
	engine     engine
	fixed      multigrid.FixedRuns // points of level 0 that no sweep updates, of a weighted operator
}

// fixedIn returns the fixed points of row y.
func (l *level[F]) fixedIn(y int) []multigrid.Columns {
	if l.fixed == nil {
		return nil
	}
	y, _ = l.Mesh.Canonical(y)
	return l.fixed[y]
}

// keep makes the fixed points of row y in dst those of src.
func (l *level[F]) keep(dst, src []F, y int) {
	for _, r := range l.fixedIn(y) {
		copy(dst[r.Lo:r.Hi], src[r.Lo:r.Hi])
	}
}

// newLevel allocates a level. Without own rows it is held as a whole.
func newLevel[F float](l multigrid.Level, own *solver.Stripe, neighbour [2]bool, source bool,
	e engine) *level[F] {
	v := &level[F]{Level: l, own: l.Mesh.Interior(), whole: own == nil, h: F(l.Scale), q: F(l.Blend), scale: 1,
		engine: e}
	for i, w := range multigrid.Weights() {
		v.weights[i] = F(w)
	}
	if own != nil {
		v.own, v.neighbour = *own, neighbour
	}
	v.u, v.v = v.newArray(), v.newArray()
	if source {
		v.b = v.newArray()
	}
	return v
}

func (l *level[F]) newArray() array[F] { return newArrayOf[F](l, l.Mesh.NX) }

// newArrayOf allocates an array with nx columns and the rows that the rank holds of the level: the whole mesh, or the
// stripe with its halos or walls.
func newArrayOf[V, F float](l *level[F], nx int) array[V] {
	held := l.newRows()
	l.arrays++
	return newArray[V](nx, held.Lo, held.Hi, 23*l.arrays%64, l.canonical)
}

// newRows returns the rows of newArrayOf.
func (l *level[F]) newRows() solver.Stripe {
	held, beyond := solver.Stripe{Lo: 0, Hi: l.Mesh.NY}, l.own.Reach(multigrid.HaloDepth, [2]bool{true, true})
	if l.repeats() || l.neighbour[solver.Top] {
		held.Lo = beyond.Lo
	}
	if l.repeats() || l.neighbour[solver.Bottom] {
		held.Hi = beyond.Hi
	}
	return held
}

// repeats reports whether rows repeat: see array.
func (l *level[F]) repeats() bool { return l.whole && l.Mesh.PeriodicRows() }

// canonical returns the row whose memory row y has.
func (l *level[F]) canonical(y int) int {
	if l.repeats() {
		y, _ = l.Mesh.Canonical(y)
	}
	return y
}

// once returns the rows that are held once each: those of the stripe, and walls or halos beside it.
func (l *level[F]) once() solver.Stripe {
	if l.repeats() {
		return l.own
	}
	return l.newRows()
}

// link connects a level with the next coarser one and prepares a pipe for each thread.
func (l *level[F]) link(coarse solver.Mesh, own solver.Stripe, threads int) {
	if l.points != nil {
		l.halves = newHalves(l, coarse)
	} else {
		l.columns = newColumns(l.X, l.Mesh, coarse)
	}
	l.rows = &slopes{l.Rows(), own}
	for range lanesOf(l.own, l.Mesh.NX, threads) {
		l.pipes = append(l.pipes, newPipe(l, coarse, l.engine))
	}
}

// lanesOf returns how many of the threads work on rows of nx points.
func lanesOf(rows solver.Stripe, nx, threads int) int {
	return max(1, min(threads, rows.Rows()/threadRows, rows.Rows()*nx/threadPoints))
}

// The fewest rows and points that are worth a thread. To wake one takes as long as the sweeps of some thousand points.
const (
	threadRows   = 32
	threadPoints = 1 << 14
)

// reach returns rows s, as far as they are swept.
func (l *level[F]) reach(s solver.Stripe) solver.Stripe {
	if !l.Mesh.PeriodicRows() {
		in := l.Mesh.Interior()
		s.Lo, s.Hi = max(s.Lo, in.Lo), min(s.Hi, in.Hi)
	}
	return s
}

// left returns the rows of v that Down leaves for Up.
func (l *level[F]) left() solver.Stripe { return multigrid.LeftRows(l.own, l.neighbour) }

// read sets s to the rows and the coefficients of the level for row y, whose source is b. It sets it in place: in small
// levels copies of a stencil take as long as the row.
func (l *level[F]) read(s *stencil[F], north, centre, south []F, y int) {
	s.north, s.centre, s.south, s.h, s.q = north, centre, south, l.h, l.q
	s.b, s.ahead = nil, nil
	if l.b.rows != nil {
		s.b = l.b.at(y)
	}
	s.lo, s.hi = l.Mesh.InteriorColumns()
	if l.points != nil {
		s.points = l.points.at(y)
		return // without mirrors
	}
	s.mirrorLeft, s.mirrorRight = l.Mesh.Walls.Left == solver.Neumann, l.Mesh.Walls.Right == solver.Neumann
}

// repeat makes columns 0 and NX-1 of a row copies where left and right are periodic.
func repeat[F float](row []F, m solver.Mesh) {
	if m.PeriodicColumns() {
		row[0], row[m.NX-1] = row[m.NX-2], row[1]
	}
}

// beside returns the rows that are the neighbours of row y: beyond a Neumann wall, the mirror image, unless points have
// couplings of their own, which are 0 there.
func (l *level[F]) beside(y int) (north, south int) {
	north, south = y-1, y+1
	if l.points != nil {
		return north, south
	}
	if y == 0 && l.Mesh.Walls.Top == solver.Neumann {
		north = 1
	}
	if y == l.Mesh.NY-1 && l.Mesh.Walls.Bottom == solver.Neumann {
		south = y - 1
	}
	return north, south
}

// divide cuts rows into at most n parts and runs them at once, the first one on the calling goroutine.
func divide(rows solver.Stripe, n int, run func(i int, part solver.Stripe)) {
	var helpers sync.WaitGroup
	parts := split(rows, n)
	for i := 1; i < len(parts); i++ {
		helpers.Go(func() { run(i, parts[i]) })
	}
	if len(parts) > 0 {
		run(0, parts[0])
	}
	helpers.Wait()
}

// split cuts rows into n parts at multiples of a group's rows.
func split(rows solver.Stripe, n int) []solver.Stripe {
	parts := make([]solver.Stripe, 0, n)
	lo := rows.Lo
	for i := range n {
		hi := rows.Hi
		if i < n-1 {
			hi = min(hi, (rows.Lo+rows.Rows()*(i+1)/n)/solver.GroupRows*solver.GroupRows)
		}
		parts = append(parts, solver.Stripe{Lo: lo, Hi: hi})
		lo = hi
	}
	return slices.DeleteFunc(parts, func(s solver.Stripe) bool { return s.Rows() <= 0 })
}

// MemoryBytes returns the bytes of the arrays that New allocates. Those of a weighted operator include what its set-up
// needs and gives back.
func MemoryBytes(l multigrid.Layout) int64 {
	last := len(l.Plan.Levels) - 1
	bytes := l.FactorBytes()
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
