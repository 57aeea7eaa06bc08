package levels

import (
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// halves are the transfers of a weighted operator between a level and the next coarser one: P' of docs/numerics.md.
type halves struct {
	multigrid.Level
	// By coarse column: the fine column that lies on it, and the ones before and behind it if they lie between two
	// coarse columns, or -1.
	on, before, behind []int32
	lo, hi             int // coarse columns that are swept
	// Coarse columns [0, regular) lie on every other fine column, and one lies behind each of them; from column 1 on,
	// one also lies before them.
	regular int
	weights array[float32]
	first   []int // by fine row, from weights.lo on: its first row of weights
}

// parts are the rows of weights of a fine row for a coarse row that it lies on or next to, by coarse column: those of
// the fine columns on, before and behind. If it lies between two coarse rows, those for the second one follow.
const parts = 3

// newHalves allocates the transfers between a level and a coarser mesh.
func newHalves[F float](l *level[F], coarse solver.Mesh) *halves {
	h := &halves{Level: l.Level}
	h.lo, h.hi = coarse.InteriorColumns()
	column := func(x int) int32 {
		if _, between := l.HalveX.At(x); !between || x < 0 || x >= l.Mesh.NX {
			return -1
		}
		return int32(x)
	}
	for c := range coarse.NX {
		x := l.HalveX.On(c)
		if x >= l.Mesh.NX { // the last one of a periodic level
			break
		}
		h.on = append(h.on, int32(x))
		h.before, h.behind = append(h.before, column(x-1)), append(h.behind, column(x+1))
	}
	for c := range h.on {
		if int(h.on[c]) != 2*c || int(h.behind[c]) != 2*c+1 || c > 0 && int(h.before[c]) != 2*c-1 {
			break
		}
		h.regular = c + 1
	}
	held := l.newRows()
	h.first = make([]int, held.Rows())
	n, canonical := 0, make(map[int]int)
	for i := range h.first {
		y := l.canonical(held.Lo + i)
		at, ok := canonical[y]
		if !ok {
			at, canonical[y] = n, n
			n += h.rowsOf(y)
		}
		h.first[i] = at
	}
	h.weights = array[float32]{lo: held.Lo, rows: newRows[float32](coarse.NX, n)}
	return h
}

// rowsOf returns the number of rows of weights of fine row y.
func (h *halves) rowsOf(y int) int {
	if _, between := h.HalveY.At(y); between {
		return 2 * parts
	}
	return parts
}

// at returns the rows of weights of fine row y.
func (h *halves) at(y int) [][]float32 {
	first := h.first[y-h.weights.lo]
	return h.weights.rows[first : first+h.rowsOf(y)]
}

// spread sets a row of corrections to those of fine row y from the coarse field u.
func (h *halves) spread(e *engine, dst []float32, u array[float32], y int) {
	c, between := h.HalveY.At(y)
	w := h.at(y)
	if between {
		spreadTwo(e, h, dst, w, u.at(c), u.at(c+1))
		return
	}
	spreadOne(e, h, dst, w, u.at(c))
}

// spreadOne sets dst to the corrections of a row that lies on a coarse row u.
func spreadOne(e *engine, h *halves, dst []float32, w [][]float32, u []float32) {
	on, before, behind, from := w[0], w[1], w[2], 0
	if f := of[float32](e, h.regular); f != nil {
		a := &e.args
		a.dst, a.a, a.n = address(dst, 0), address(u, 0), h.regular
		a.weights(w, 0)
		f.spreadOne(a)
		from = h.regular
	}
	for c := from; c < len(h.on); c++ {
		x, v := h.on[c], u[c]
		dst[x] = on[c] * v
		if x := h.behind[c]; x >= 0 {
			dst[x] = kernel.FMA(before[c+1], u[c+1], behind[c]*v)
		}
	}
}

// spreadTwo sets dst to the corrections of a row that lies between coarse rows north and south.
func spreadTwo(e *engine, h *halves, dst []float32, w [][]float32, north, south []float32) {
	on, before, behind, onS, beforeS, behindS, from := w[0], w[1], w[2], w[3], w[4], w[5], 0
	if f := of[float32](e, h.regular); f != nil {
		a := &e.args
		a.dst, a.a, a.d, a.n = address(dst, 0), address(north, 0), address(south, 0), h.regular
		a.weights(w, 0)
		f.spreadTwo(a)
		from = h.regular
	}
	for c := from; c < len(h.on); c++ {
		dst[h.on[c]] = kernel.FMA(onS[c], south[c], on[c]*north[c])
		if x := h.behind[c]; x >= 0 {
			t := kernel.FMA(before[c+1], north[c+1], behind[c]*north[c])
			dst[x] = kernel.FMA(beforeS[c+1], south[c+1], kernel.FMA(behindS[c], south[c], t))
		}
	}
}

// collect adds the restriction of a row of defects d with three rows of weights to dst.
func (h *halves) collect(e *engine, dst []float32, w [][]float32, d []float32) {
	first, end := max(h.lo, 1), min(h.regular, h.hi)
	f := of[float32](e, end-first)
	if end-first < pad || f == nil {
		h.collectPart(dst, w, d, h.lo, h.hi)
		return
	}
	// What is added twice counts twice, so the function takes whole vectors: the last pad columns, of which some belong
	// to the others, are added to a copy.
	n, last := (end-first)/pad*pad, end-pad
	copy(e.tail[:], dst[last:end])
	collectVectors(e, f, e.tail[:], w, d, last)
	collectVectors(e, f, dst[first:first+n], w, d, first)
	copy(dst[first+n:end], e.tail[first+n-last:])
	h.collectPart(dst, w, d, h.lo, first)
	h.collectPart(dst, w, d, end, h.hi)
}

// collectVectors is collect by f for the coarse columns of dst, whose first one is c.
func collectVectors(e *engine, f *functions, dst []float32, w [][]float32, d []float32, c int) {
	a := &e.args
	a.dst, a.a, a.n = address(dst, 0), address(d, 2*c), len(dst)
	a.weights(w[:parts], c)
	f.collect(a)
}

// weights sets the rows of weights from a coarse column on.
func (a *rowArgs) weights(w [][]float32, c int) {
	for i, row := range w {
		a.rows[i] = address(row, c)
	}
}

// collectPart is collect for coarse columns [lo, hi).
func (h *halves) collectPart(dst []float32, w [][]float32, d []float32, lo, hi int) {
	on, before, behind := w[0], w[1], w[2]
	for c := lo; c < hi; c++ {
		sum := dst[c]
		if x := h.before[c]; x >= 0 {
			sum = kernel.FMA(before[c], d[x], sum)
		}
		sum = kernel.FMA(on[c], d[h.on[c]], sum)
		if x := h.behind[c]; x >= 0 {
			sum = kernel.FMA(behind[c], d[x], sum)
		}
		dst[c] = sum
	}
}

// restrictHalves adds the defect of row y to the coarse rows on which it lies or between which.
func (p *pipe[F]) restrictHalves(w *pass[F], y int) {
	h := p.level.halves
	repeat(p.defect, p.level.Mesh)
	at, _ := h.HalveY.At(y)
	rows := h.at(y)
	for i := 0; i < len(rows)/parts; i++ {
		coarse := at + i
		if coarse < w.coarse.Lo || coarse >= w.coarse.Hi {
			continue
		}
		dst := w.to.at(coarse)
		if y == p.level.firstOf(coarse) {
			clear(dst[h.lo:h.hi])
		}
		h.collect(&p.engine, dst, rows[parts*i:], p.defect)
	}
}

// firstOf returns the first row that lies on a coarse row or next to it.
func (l *level[F]) firstOf(coarse int) int {
	first, _ := l.HalveY.Around(coarse)
	first = l.reach(solver.Stripe{Lo: first, Hi: first + 1}).Lo
	if at, between := l.HalveY.At(first); at != coarse && !between {
		first++
	}
	return first
}

// set sets the weights of fine row y. p is P by south and east of the coarse point, f the numbers of the fine points by
// which it is multiplied, or nil for 1, and g those of the coarse rows.
func (h *halves) set(y int, p *[2][2][]float64, f []float64, g [2][]float64) {
	rows := h.at(y)
	for down := range len(rows) / parts {
		w, v := rows[parts*down:], g[down]
		factor := func(x, right, c int) float32 {
			v := v[c]
			if f != nil {
				v = float64(f[x] * v)
			}
			return float32(float64(p[down][right][x] * v))
		}
		for c, x := range h.on {
			w[0][c] = factor(int(x), 0, c)
		}
		for c, x := range h.behind {
			if x < 0 {
				continue
			}
			w[2][c] = factor(int(x), 0, c)
			if c+1 < len(w[1]) {
				w[1][c+1] = factor(int(x), 1, c+1)
			}
		}
	}
}
