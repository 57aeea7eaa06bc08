package levels

import (
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// stencilRow is a row of the equations of a level, wide: see there.
type stencilRow struct{ c, e, s, se, sw []float64 }

// stencil returns row y; that of level 0 with couplings to points that are not unknowns, and without arrays for
// diagonal neighbours. Beyond what is held it is zeros.
func (q *equations) stencil(y int) stencilRow {
	row := func(a multigrid.Array) []float64 {
		if r := q.array(a); r.rows != nil && r.has(y) {
			return wide(r.at(y))
		}
		return wide(q.zero)
	}
	return stencilRow{row(multigrid.Centre), row(multigrid.East), row(multigrid.South), row(multigrid.SouthEast),
		row(multigrid.SouthWest)}
}

// newest keeps what was computed last of rows that follow each other.
type newest[V any] [8]struct {
	y int
	v V
}

// fill gives each row that is kept its memory.
func (n *newest[V]) fill(memory func() V) {
	for i := range n {
		n[i].y, n[i].v = math.MinInt, memory()
	}
}

// at returns the memory for row y, and whether it has the values of that row. The caller computes them otherwise.
func (n *newest[V]) at(y int) (v V, known bool) {
	k := &n[y&(len(n)-1)]
	known, k.y = k.y == y, y
	return k.v, known
}

// prolongation computes rows of P of a level.
type prolongation struct {
	engine
	*equations
	lo, hi        int           // columns that are swept
	coarseColumns solver.Stripe // columns of the coarser mesh that are swept
	columnOf      []int32       // by column: the coarse column on which it lies or behind which
	betweenX      []bool        // by column
	between       []float64     // by column: ones in all bits where betweenX, and else 0
	p             newest[[2][2][]float64]
	excesses      newest[[]float64]
	zeros         [2][2][]float64
}

func newProlongation(e engine, q *equations) *prolongation {
	p := &prolongation{engine: e, equations: q}
	m := q.Mesh
	p.lo, p.hi = m.InteriorColumns()
	coarse := solver.Mesh{NX: m.NX - q.HalveX.Fine + q.HalveX.Coarse, Walls: m.Walls}
	p.coarseColumns.Lo, p.coarseColumns.Hi = coarse.InteriorColumns()
	for x := range m.NX {
		c, between := q.HalveX.At(x)
		p.columnOf, p.betweenX = append(p.columnOf, int32(c)), append(p.betweenX, between)
	}
	p.between = newRows[float64](m.NX, 1)[0]
	for x, between := range p.betweenX {
		if between {
			p.between[x] = math.Float64frombits(math.MaxUint64)
		}
	}
	p.p.fill(func() [2][2][]float64 { return newP(m.NX) })
	p.excesses.fill(func() []float64 { return wide(newRows[float64](m.NX, 1)[0]) })
	p.zeros = newP(m.NX)
	return p
}

func newP(nx int) (p [2][2][]float64) {
	rows := newRows[float64](nx, 4)
	for i, r := range rows {
		p[i/2][i%2] = r
	}
	return p
}

// excess returns what C exceeds the sum of the couplings by in row y, wide; 0 at points that are not unknowns.
func (p *prolongation) excess(y int) []float64 {
	row, known := p.excesses.at(y)
	if known {
		return row
	}
	s, north := p.stencil(y), p.stencil(y-1)
	if f := p.load([2][]float64{row[1:], nil}, &s, &north, &s); f != nil {
		f.excess(&p.args)
	} else {
		for x := 1; x < len(row)-1; x++ {
			sum := ((s.e[x-1] + s.e[x]) + (north.s[x] + s.s[x])) + ((north.se[x-1] + north.sw[x+1]) + (s.sw[x] +
				s.se[x]))
			row[x] = max(0, s.c[x]-sum)
		}
	}
	repeat(row[1:len(row)-1], p.Mesh)
	return row
}

// at returns P of row y, by south and east of the coarse point.
func (p *prolongation) at(y int) [2][2][]float64 {
	if a := p.array(multigrid.Centre); !a.has(y) {
		return p.zeros
	}
	to, known := p.p.at(y)
	if known {
		return to
	}
	for _, r := range [][]float64{to[0][0], to[0][1], to[1][0], to[1][1]} {
		clear(r)
	}
	if _, between := p.HalveY.At(y); !between {
		p.onRow(to[0], y)
	} else {
		p.betweenRows(to, y)
	}
	for _, r := range [][]float64{to[0][0], to[0][1], to[1][0], to[1][1]} {
		repeat(r, p.Mesh)
	}
	return to
}

// load sets the arguments of the functions for a row with those above and below. It returns nil if there are none.
func (p *prolongation) load(to [2][]float64, s, north, south *stencilRow) *functions {
	f := of[float64](&p.engine, p.Mesh.NX)
	if f == nil {
		return nil
	}
	p.args.load(to, s, north, south)
	p.args.rows[10] = address(p.between, 0)
	return f
}

// load sets the results of a function, and the rows that it reads of stencils.
func (a *rowArgs) load(to [2][]float64, s, north, south *stencilRow) {
	a.dst, a.dst2, a.n = address(to[0], 0), address(to[1], 0), len(s.c)-2
	for i, row := range [][]float64{s.c, north.c, south.c, s.e, north.s, s.s, north.se, north.sw, s.sw, s.se} {
		a.rows[i] = address(row, 1)
	}
}

// onRow computes P of a row that lies on a coarse one.
func (p *prolongation) onRow(to [2][]float64, y int) {
	s, north, excess := p.stencil(y), p.stencil(y-1), p.excess(y)
	if f := p.load(to, &s, &north, &s); f != nil {
		p.args.rows[12] = address(excess, 1) // rowExcess of generate/prolongation.go
		f.interpolateAlong(&p.args)
		return
	}
	for x := p.lo; x < p.hi; x++ {
		at := x + 1
		switch {
		case !(s.c[at] > 0):
		case !p.betweenX[x]:
			to[0][x] = 1
		default:
			left := math.Abs((north.se[at-1] + s.e[at-1]) + s.sw[at])
			right := math.Abs((north.sw[at+1] + s.e[at]) + s.se[at])
			if total := (left + right) + beyond(excess[at], excess[at-1], excess[at+1]); total != 0 {
				to[0][x] = divided(left, total, s.c[at-1])
				to[1][x] = divided(right, total, s.c[at+1])
			}
		}
	}
}

// divided returns v / total where the neighbour's C is not 0.
func divided(v, total, neighbour float64) float64 {
	if neighbour > 0 {
		return v / total
	}
	return 0
}

// beyond returns by how much the excess of a point is above the lesser one of both neighbours, or 0.
func beyond(own, before, after float64) float64 { return max(0, own-min(before, after)) }

// betweenRows computes P of a row between two coarse ones.
func (p *prolongation) betweenRows(to [2][2][]float64, y int) {
	s, north, south := p.stencil(y), p.stencil(y-1), p.stencil(y+1)
	excesses := [3][]float64{p.excess(y - 1), p.excess(y), p.excess(y + 1)}
	above, below := p.at(y - 1)[0], p.at(y + 1)[0]
	if f := p.load(to[0], &s, &north, &south); f != nil {
		a := &p.args
		for i, row := range excesses {
			a.rows[11+i] = address(row, 1)
		}
		a.rows[15] = address(to[1][0], 0)
		f.interpolateAcross(a)
		for i, row := range [][]float64{above[0], above[1], below[0], below[1], to[1][0], to[1][1]} {
			a.rows[11+i] = address(row, 0)
		}
		repeat(to[0][0], p.Mesh)
		repeat(to[1][0], p.Mesh)
		f.interpolateBoth(a)
		return
	}
	for x := p.lo; x < p.hi; x++ {
		at := x + 1
		if p.betweenX[x] || !(s.c[at] > 0) {
			continue
		}
		above := math.Abs((north.se[at-1] + north.s[at]) + north.sw[at+1])
		below := math.Abs((s.sw[at] + s.s[at]) + s.se[at])
		if total := (above + below) + beyond(excesses[1][at], excesses[0][at], excesses[2][at]); total != 0 {
			to[0][0][x] = divided(above, total, north.c[at])
			to[1][0][x] = divided(below, total, south.c[at])
		}
	}
	repeat(to[0][0], p.Mesh)
	repeat(to[1][0], p.Mesh)
	for x := p.lo; x < p.hi; x++ {
		at := x + 1
		c := s.c[at]
		if !p.betweenX[x] || !(c > 0) {
			continue
		}
		if north.c[at-1] > 0 {
			v := math.FMA(north.s[at], above[0][x], north.se[at-1])
			to[0][0][x] = math.FMA(s.e[at-1], to[0][0][x-1], v) / c
		}
		if north.c[at+1] > 0 {
			v := math.FMA(north.s[at], above[1][x], north.sw[at+1])
			to[0][1][x] = math.FMA(s.e[at], to[0][0][x+1], v) / c
		}
		if south.c[at-1] > 0 {
			v := math.FMA(s.s[at], below[0][x], s.sw[at])
			to[1][0][x] = math.FMA(s.e[at-1], to[1][0][x-1], v) / c
		}
		if south.c[at+1] > 0 {
			v := math.FMA(s.s[at], below[1][x], s.se[at])
			to[1][1][x] = math.FMA(s.e[at], to[1][0][x+1], v) / c
		}
	}
}

// transferer computes the transfers of a level from P and the scalings.
type transferer struct {
	*prolongation
	*scaler
	next *equations
	h    []float64
}

func newTransferer(e engine, q, next *equations) *transferer {
	t := &transferer{prolongation: newProlongation(e, q), scaler: newScaler(e, q), next: next}
	if !q.finest {
		t.h = newRows[float64](q.Mesh.NX, 1)[0]
	}
	return t
}

// set computes those of row y.
func (t *transferer) set(to *halves, y int) {
	if t.h != nil {
		t.scale(y, nil, t.h)
		repeat(t.h, to.Mesh)
	}
	at, _ := to.HalveY.At(y)
	p := t.at(y)
	to.set(y, &p, t.h, [2][]float64{t.next.scaling(at), t.next.scaling(at + 1)})
}
