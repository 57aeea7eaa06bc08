package levels

import (
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// minimal is the least C of a coarse point that is an unknown.
const minimal = 0x1p-240

// The kinds of columns, for which there are shorter ways.
const (
	anyColumn   uint8 = iota
	amidBetween       // a column on a coarse one, with both neighbours between coarse ones
	amidOn            // a column between coarse ones, with both neighbours on coarse ones
)

// galerkin computes rows of the stencil of the next coarser level: A = P^T A P.
type galerkin struct {
	*prolongation
	// By coarse row, of the row itself and the next one: AP of each point of a row and the coarse columns from the one
	// before At(x) to the one behind it.
	ap    [2][3][]float64
	kinds []uint8      // by column
	split *columnSplit // nil if there are no functions for the columns
}

func newGalerkin(e engine, q *equations) *galerkin {
	g := &galerkin{prolongation: newProlongation(e, q)}
	if g.split = newColumnSplit(e, g.prolongation); g.split != nil {
		return g
	}
	for i := range g.ap {
		copy(g.ap[i][:], newRows[float64](q.Mesh.NX, 3))
	}
	g.kinds = make([]uint8, q.Mesh.NX)
	for x := 1; x < q.Mesh.NX-1; x++ {
		at := func(i int) (int32, bool) { return g.columnOf[x+i] - g.columnOf[x], g.betweenX[x+i] }
		west, first := at(-1)
		east, second := at(1)
		switch {
		case !g.betweenX[x] && first && second && west == -1 && east == 0:
			g.kinds[x] = amidBetween
		case g.betweenX[x] && !first && !second && west == 0 && east == 1:
			g.kinds[x] = amidOn
		}
	}
	return g
}

// coarsen computes a row of the next coarser level.
func (g *galerkin) coarsen(to *equations, row int) {
	var dst [5][]float64
	for i := range dst {
		dst[i] = to.arrays[i].at(row)
		clear(dst[i])
	}
	first, end := g.HalveY.Around(row)
	for y := first; y < end; y++ {
		at, between := g.HalveY.At(y)
		if at != row && !(between && at == row-1) {
			continue
		}
		if g.split != nil {
			g.split.add(&dst, y, row, row-at)
			continue
		}
		for i := range g.ap {
			g.timesP(&g.ap[i], y, row+i)
		}
		g.add(&dst, y, row-at)
	}
	for x, c := range dst[0] {
		if !(c >= minimal) {
			dst[0][x] = 0
		}
		for i := range dst[1:] {
			dst[1+i][x] = 0 - dst[1+i][x]
		}
	}
	for i := range dst {
		repeat(dst[i], to.Mesh)
	}
}

// add adds the terms of row y, whose P for the coarse row is p[down].
func (g *galerkin) add(dst *[5][]float64, y, down int) {
	p := g.at(y)[down]
	coarse := g.coarseColumns
	for c := coarse.Lo; c < coarse.Hi; c++ {
		first, end := g.HalveX.Around(c)
		for x := max(first, 0); x < min(end, g.Mesh.NX); x++ {
			right := c - int(g.columnOf[x])
			if right != 0 && !(right == 1 && g.betweenX[x]) {
				continue
			}
			v, own, next := p[right][x], &g.ap[0], &g.ap[1]
			dst[0][c] = math.FMA(v, own[1+right][x], dst[0][c])
			dst[2][c] = math.FMA(v, next[1+right][x], dst[2][c])
			dst[4][c] = math.FMA(v, next[right][x], dst[4][c])
			if right == 0 {
				dst[1][c] = math.FMA(v, own[2][x], dst[1][c])
				dst[3][c] = math.FMA(v, next[2][x], dst[3][c])
			}
		}
	}
}

// timesP computes AP of row y and a coarse row.
func (g *galerkin) timesP(ap *[3][]float64, y, row int) {
	for _, a := range ap {
		clear(a)
	}
	s, north := g.stencil(y), g.stencil(y-1)
	for dy := -1; dy <= 1; dy++ {
		at, between := g.HalveY.At(y + dy)
		down := row - at
		if down != 0 && !(down == 1 && between) {
			continue
		}
		p, sign := g.at(y + dy)[down], -1.0
		var west, centre, east []float64 // what couples a point to those of row y+dy
		switch dy {
		case -1:
			west, centre, east = north.se, north.s[1:], north.sw[2:]
		case 0:
			west, centre, east, sign = s.e, s.c[1:], s.e[1:], 1
		case 1:
			west, centre, east = s.sw[1:], s.s[1:], s.se[1:]
		}
		for x := g.lo; x < g.hi; x++ {
			w, c, e := -west[x], sign*centre[x], -east[x]
			switch g.kinds[x] {
			case amidBetween:
				ap[0][x] = math.FMA(w, p[0][x-1], ap[0][x])
				v := math.FMA(c, p[0][x], math.FMA(w, p[1][x-1], ap[1][x]))
				ap[1][x] = math.FMA(e, p[0][x+1], v)
				ap[2][x] = math.FMA(e, p[1][x+1], ap[2][x])
			case amidOn:
				ap[1][x] = math.FMA(c, p[0][x], math.FMA(w, p[0][x-1], ap[1][x]))
				ap[2][x] = math.FMA(e, p[0][x+1], math.FMA(c, p[1][x], ap[2][x]))
			default:
				g.addAP(ap, p, x, [3]float64{w, c, e})
			}
		}
	}
	for _, a := range ap {
		repeat(a, g.Mesh)
	}
}

// addAP adds the terms of a point and its neighbours in the west and the east, whose a are given.
func (g *galerkin) addAP(ap *[3][]float64, p [2][]float64, x int, a [3]float64) {
	for i, v := range a {
		q := x + i - 1
		if q < 0 || q >= g.Mesh.NX {
			continue
		}
		j := 1 + int(g.columnOf[q]) - int(g.columnOf[x])
		if j >= 0 && j < 3 {
			ap[j][x] = math.FMA(v, p[0][q], ap[j][x])
		}
		if j++; g.betweenX[q] && j >= 0 && j < 3 {
			ap[j][x] = math.FMA(v, p[1][q], ap[j][x])
		}
	}
}

// scaler computes the scaling of a level.
type scaler struct {
	engine
	*equations
	unused []float64         // takes g or h where it is not asked for
	roots  newest[[]float64] // 1/sqrt(C), wide
}

func newScaler(e engine, q *equations) *scaler {
	s := &scaler{engine: e, equations: q, unused: newRows[float64](q.Mesh.NX, 1)[0]}
	s.roots.fill(func() []float64 { return wide(newRows[float64](q.Mesh.NX, 1)[0]) })
	return s
}

// root returns 1/sqrt(C) of row y.
func (s *scaler) root(y int) []float64 {
	r, known := s.roots.at(y)
	if known {
		return r
	}
	k := s.stencil(y)
	if f := of[float64](&s.engine, s.Mesh.NX); f != nil {
		s.args.load([2][]float64{r[1:], r[1:]}, &k, &k, &k)
		f.roots(&s.args)
		return r
	}
	for x, c := range k.c {
		r[x] = 0
		if c > 0 {
			r[x] = 1 / math.Sqrt(c)
		}
	}
	return r
}

// scale computes g and h of the swept columns of row y. Either may be nil.
func (s *scaler) scale(y int, g, h []float64) {
	k, above := s.stencil(y), s.stencil(y-1)
	r, n, f := s.root(y), s.root(y-1), s.root(y+1)
	if g == nil {
		g = s.unused
	}
	if h == nil {
		h = s.unused
	}
	if functions := of[float64](&s.engine, s.Mesh.NX); functions != nil {
		s.args.load([2][]float64{g, h}, &k, &above, &k)
		for i, row := range [][]float64{r, n, f} {
			s.args.rows[11+i] = address(row, 1)
		}
		functions.scaling(&s.args)
		return
	}
	for x := 1; x < len(r)-1; x++ {
		c, own := k.c[x], r[x]
		g[x-1], h[x-1] = 0, 0
		if !(c > 0) {
			continue
		}
		sum := math.FMA(math.Abs(k.e[x-1]), own*r[x-1], 0)
		sum = math.FMA(math.Abs(k.e[x]), own*r[x+1], sum)
		sum = math.FMA(math.Abs(above.s[x]), own*n[x], sum)
		sum = math.FMA(math.Abs(k.s[x]), own*f[x], sum)
		sum = math.FMA(math.Abs(above.se[x-1]), own*n[x-1], sum)
		sum = math.FMA(math.Abs(above.sw[x+1]), own*n[x+1], sum)
		sum = math.FMA(math.Abs(k.sw[x]), own*f[x-1], sum)
		sum = math.FMA(math.Abs(k.se[x]), own*f[x+1], sum)
		h[x-1] = math.Sqrt(c * max(1, sum))
		g[x-1] = 1 / h[x-1]
	}
}

// scaled computes what sweeps read of row y.
func (q *equations) scaled(to *couplings[float32], y int) {
	k, g, below := q.stencil(y), wide(q.scaling(y)), wide(q.scaling(y+1))
	diagonal, east, south := to.diagonal.at(y), to.east.at(y), to.south.at(y)
	southEast, southWest := to.southEast.at(y), to.southWest.at(y)
	lo, hi := q.Mesh.InteriorColumns()
	for x := lo; x < hi; x++ {
		at := x + 1
		diagonal[x] = float32(k.c[at] * float64(g[at]*g[at]))
		east[x] = float32(k.e[at] * float64(g[at]*g[at+1]))
		south[x] = float32(k.s[at] * float64(g[at]*below[at]))
		southEast[x] = float32(k.se[at] * float64(g[at]*below[at+1]))
		southWest[x] = float32(k.sw[at] * float64(g[at]*below[at-1]))
	}
	for _, row := range [][]float32{diagonal, east, south, southEast, southWest} {
		repeat(row, q.Mesh)
	}
}

// scaling returns g of row y.
func (q *equations) scaling(y int) []float64 {
	if a := q.array(multigrid.Scaling); a.has(y) {
		return a.at(y)
	}
	return q.zero
}

// slopes is the restriction from the rows of a level to the rows of the next coarser one that the rank owns.
type slopes struct {
	multigrid.Transfer
	own solver.Stripe // coarse rows
}

// part returns the coarse rows that belong to fine rows s; own are all fine rows of the rank.
func (r *slopes) part(s, own solver.Stripe) solver.Stripe {
	at := func(y int) int {
		switch {
		case y <= own.Lo:
			return r.own.Lo
		case y >= own.Hi:
			return r.own.Hi
		}
		return min(max(r.From(y), r.own.Lo), r.own.Hi)
	}
	return solver.Stripe{Lo: at(s.Lo), Hi: at(s.Hi)}
}

// reads returns the fine rows that the restriction to coarse rows s reads.
func (r *slopes) reads(s solver.Stripe) solver.Stripe {
	if s.Rows() <= 0 {
		return solver.Stripe{}
	}
	lo, _ := r.Around(s.Lo)
	_, hi := r.Around(s.Hi - 1)
	return solver.Stripe{Lo: lo, Hi: hi}
}
