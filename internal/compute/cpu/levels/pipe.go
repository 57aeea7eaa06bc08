package levels

import (
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// stages is the number of steps that follow each other, row by row, in one pass over memory: stage 0 is the field with
// which the sweeps begin, stage s the field after s sweeps.
const stages = multigrid.SmootherSweeps + 1

// pipe does the sweeps of Down or Up for some rows of a level on one thread. It goes from the topmost row to the lowest
// one, two rows at a time: once stage s-1 has row y+2, stage s computes rows y and y+1. Each stage keeps its four
// newest rows; the last stage writes to its destination.
type pipe[F float] struct {
	engine
	level   *level[F]
	rings   [stages][4][]F
	at      [stages][4][]F // the newest rows of each stage, by row mod 4
	rows    [stages]solver.Stripe
	read    [2]stencil[F] // what the rows of a sweep read
	d       []F
	acc     []float64
	sum     kernel.Collector
	collect *kernel.Kernel
	// For the transfers: a row of defects, two rows of column sums by coarse row mod 2, and a row of corrections.
	defect, correction, blended []float32
	sums                        [2][]float32
	zero                        []F
	zero32                      []float32
}

func newPipe[F float](l *level[F], coarse solver.Mesh, e engine) *pipe[F] {
	p := &pipe[F]{level: l, engine: e}
	for s := range p.rings {
		copy(p.rings[s][:], newRows[F](l.Mesh.NX, 4))
	}
	row := newRows[F](l.Mesh.NX, 2)
	p.d, p.zero = row[0], row[1]
	fine := newRows[float32](l.Mesh.NX, 4)
	p.defect, p.correction, p.sums = fine[0], fine[1], [2][]float32{fine[2], fine[3]}
	row32 := newRows[float32](coarse.NX, 2)
	p.blended, p.zero32 = row32[0], row32[1]
	return p
}

// count prepares the pipe for sums of squares.
func (p *pipe[F]) count(k *kernel.Kernel, e solver.Magnitude) {
	p.collect, p.sum = k, kernel.NewCollector(e, solver.Float64)
	groups := (p.level.Mesh.NX + 4*k.Lanes - 1) / (4 * k.Lanes) * k.Lanes
	rows := newRows[float64](4*groups, 1)
	p.acc, p.d = rows[0], newRows[F](4*groups, 1)[0]
}

// pass is the work of a pipe.
type pass[F float] struct {
	weights [multigrid.SmootherSweeps]F
	begin   func(y int) []F // row y of stage 0; nil for zeros
	from    array[F]        // the field whose row y begin(y) reads; without rows for zeros
	dst     array[F]
	write   solver.Stripe // rows that the last stage writes to dst
	counted solver.Stripe // rows whose squares are added
	coarse  solver.Stripe // rows of the next level that get a right-hand side
	to      array[float32]
}

// run does a pass.
func (p *pipe[F]) run(w *pass[F]) {
	reads := p.level.rows.reads(w.coarse)
	last := w.write
	if reads.Rows() > 0 {
		last.Lo, last.Hi = min(last.Lo, reads.Lo-1), max(last.Hi, reads.Hi+1)
		reads = p.level.reach(reads)
	}
	last = p.level.reach(last)
	for s := range p.rows {
		more := multigrid.SmootherSweeps - s
		p.rows[s] = p.level.reach(solver.Stripe{Lo: last.Lo - more, Hi: last.Hi + more})
	}
	for y := p.rows[0].Lo - 1; y <= p.rows[stages-1].Hi+stages; y += 2 {
		p.fill(w, y)
		for s := 1; s < stages; s++ {
			p.sweep(w, s, y-s)
		}
		for r := max(y-stages, reads.Lo); r < min(y-stages+2, reads.Hi); r++ {
			p.restrict(w, r)
		}
	}
}

// fill sets rows y and y+1 of stage 0, as far as the sweeps read them.
func (p *pipe[F]) fill(w *pass[F], y int) {
	if w.begin == nil {
		return
	}
	for r := max(y, p.rows[0].Lo-1); r < min(y+2, p.rows[0].Hi+1); r++ {
		if p.level.held(r) {
			p.at[0][r&3] = w.begin(r)
		}
	}
}

// held reports whether row y exists.
func (l *level[F]) held(y int) bool { return l.u.has(y) }

// row returns row y of a stage. Rows of fixed walls are the same in all stages.
func (p *pipe[F]) row(w *pass[F], s, y int) []F {
	if s == 0 && w.begin == nil {
		return p.zero
	}
	if !p.level.held(y) {
		return p.zero
	}
	in := p.level.Mesh.Interior()
	if s > 0 && !p.level.Mesh.PeriodicRows() && (y < in.Lo || y >= in.Hi) {
		return p.level.u.at(y)
	}
	return p.at[s][y&3]
}

// sweep computes rows y and y+1 of stage s, as far as the pass needs them.
func (p *pipe[F]) sweep(w *pass[F], s, y int) {
	lo, hi := max(y, p.rows[s].Lo), min(y+2, p.rows[s].Hi)
	var dst [2][]F
	k := &p.read
	for r := lo; r < hi; r++ {
		dst[r-lo] = p.prepare(w, s, r, &k[r-lo])
	}
	counts := func(r int) bool { return s == 1 && r >= w.counted.Lo && r < w.counted.Hi }
	switch weight := w.weights[s-1]; {
	case lo < hi && p.level.points != nil && counts(lo) && counts(hi-1):
		for r := lo; r < hi; r++ {
			p.sweepAndSquare(w, dst[r-lo], r, &k[r-lo])
		}
		counts = func(int) bool { return false }
	case hi-lo == 1:
		sweep(&p.engine, dst[0], &k[0], weight)
	case hi-lo == 2:
		sweepPair(&p.engine, dst, k, weight)
	}
	for r := lo; r < hi; r++ {
		row, read := dst[r-lo], &k[r-lo]
		p.level.keep(row, read.centre, r)
		repeat(row, p.level.Mesh)
		if counts(r) {
			p.square(w, r, read)
		}
	}
}

// prepare returns the memory of row y of stage s, and sets k to what its sweep reads.
func (p *pipe[F]) prepare(w *pass[F], s, y int, k *stencil[F]) []F {
	l := p.level
	dst := p.rings[s][y&3]
	if s == stages-1 && y >= w.write.Lo && y < w.write.Hi {
		dst = w.dst.at(y)
	}
	p.at[s][y&3] = dst
	north, south := l.beside(y)
	centre := p.row(w, s-1, y)
	l.read(k, p.row(w, s-1, north), centre, p.row(w, s-1, south), y)
	k.ahead = p.ahead(w, s, y)
	dst[0], dst[l.Mesh.NX-1] = centre[0], centre[l.Mesh.NX-1]
	return dst
}

// ahead returns a row that the pass uses in the step after that of row y of stage s and that the cache may not have;
// nil for none. Stages that need the cache alone fetch these rows, since memory is idle meanwhile.
func (p *pipe[F]) ahead(w *pass[F], s, y int) []F {
	a, next := array[F]{}, y+s+2 // the row of stage 0
	switch s {
	case stages - 3:
		a = w.from
	case stages - 2:
		a, next = p.level.b, next-1
	case stages - 1:
		a, next = w.dst, y+2
	}
	if !a.has(next) {
		return nil
	}
	return a.at(next)
}

// square adds the squares of a row of d, on level 0.
func (p *pipe[F]) square(w *pass[F], y int, k *stencil[F]) {
	d, ok := any(p.d).([]float64)
	if !ok {
		return
	}
	defects(&p.engine, p.d, k)
	p.addSquares(w, d, y)
}

// sweepAndSquare does the first sweep of row y and adds the squares of d, which it computes once for both.
func (p *pipe[F]) sweepAndSquare(w *pass[F], dst []F, y int, k *stencil[F]) {
	d, ok := any(p.d).([]float64)
	if ok && sweepKeeping(&p.engine, any(dst).([]float64), d, any(k).(*stencil[float64]), float64(w.weights[0])) {
		p.addSquares(w, d, y)
		return
	}
	sweep(&p.engine, dst, k, w.weights[0])
	p.square(w, y, k)
}

// addSquares adds the squares of row y of d but for fixed points, which it clears.
func (p *pipe[F]) addSquares(w *pass[F], d []float64, y int) {
	for _, r := range p.level.fixedIn(y) {
		clear(d[r.Lo:r.Hi])
	}
	begin := max(w.counted.Lo, y/solver.GroupRows*solver.GroupRows)
	if y == begin {
		clear(p.acc)
	}
	squares(&p.engine, p.acc, d)
	if end := min(w.counted.Hi, y/solver.GroupRows*solver.GroupRows+solver.GroupRows); y == end-1 {
		sums := groups(&p.engine, p.acc)
		p.collect.Collect(&p.sum, unsafe.Pointer(unsafe.SliceData(sums)), len(sums), end-begin)
	}
}

// restrict adds the defect of row y to the coarse rows around it.
func (p *pipe[F]) restrict(w *pass[F], y int) {
	l := p.level
	north, south := l.beside(y)
	last := stages - 1
	k := &p.read[0]
	l.read(k, p.row(w, last, north), p.row(w, last, y), p.row(w, last, south), y)
	switch d := any(p.d).(type) {
	case []float64:
		if l.aggregates != nil {
			residuals(&p.engine, d, any(k).(*stencil[float64]))
			l.aggregates.restrict(y, d, 1/float64(l.scale))
			return
		}
		defects(&p.engine, p.d, k)
		if l.points != nil {
			times(&p.engine, p.d, k.points.centre)
		}
		narrow(&p.engine, p.defect, d, 1/float64(l.scale), k.lo, k.hi)
	case []float32:
		defects(&p.engine, any(p.defect).([]F), k)
	}
	for _, r := range l.fixedIn(y) {
		clear(p.defect[r.Lo:r.Hi])
	}
	if l.halves != nil {
		p.restrictHalves(w, y)
		return
	}
	axis := l.Y
	at, _ := axis.Between(y)
	for coarse := max(at, w.coarse.Lo); coarse <= min(at+1, w.coarse.Hi-1); coarse++ {
		first, end := axis.Around(coarse)
		if y < first || y >= end {
			continue
		}
		rows := l.reach(solver.Stripe{Lo: first, Hi: end})
		sums := p.sums[coarse&1]
		weigh(&p.engine, sums, p.defect, axis.Weight(coarse, y), y == rows.Lo)
		if y == rows.Hi-1 {
			repeat(sums, l.Mesh)
			l.columns.gather(&p.engine, w.to.at(coarse), sums[:cap(sums)], float32(l.Gain))
		}
	}
}

// corrected returns row y of the field with the correction from the coarse level u added.
func (p *pipe[F]) corrected(u array[float32], y int) []F {
	l := p.level
	from := l.v.at(y)
	in := l.reach(solver.Stripe{Lo: y, Hi: y + 1})
	if in.Rows() == 0 {
		return from
	}
	if f, ok := any(from).([]float64); ok && l.aggregates != nil {
		d := p.rings[0][y&3]
		l.aggregates.correct(y, any(d).([]float64), f, float64(l.scale))
		repeat(d, l.Mesh)
		return d
	}
	lo, hi := l.Mesh.InteriorColumns()
	if l.halves != nil {
		l.halves.spread(&p.engine, p.correction, u, y)
	} else {
		p.interpolate(u, y, lo, hi)
	}
	dst := p.rings[0][y&3]
	dst[0], dst[l.Mesh.NX-1] = from[0], from[l.Mesh.NX-1]
	add(&p.engine, dst, from, p.correction, l.scale, lo, hi)
	l.keep(dst, from, y)
	repeat(dst, l.Mesh)
	return dst
}

// interpolate sets the row of corrections to what lies between the rows of u around row y, in columns [lo, hi).
func (p *pipe[F]) interpolate(u array[float32], y, lo, hi int) {
	at, weight := p.level.Y.Between(y)
	south := p.zero32
	if u.has(at + 1) {
		south = u.at(at + 1)
	}
	blend(&p.engine, p.blended, u.at(at), south, weight)
	p.level.columns.between(&p.engine, p.correction, p.blended[:cap(p.blended)], lo, hi)
}
