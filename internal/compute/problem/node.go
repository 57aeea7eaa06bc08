package problem

import (
	"slices"
	"sync"

	"jacobi/internal/compute/rowmath"
)

// chunk is the number of columns evaluated at a time. It is small enough for temporaries to stay in the L1 cache.
const chunk = 512

// span is the place where a node is evaluated: columns col, col+1, ... of row row. A span belongs to one goroutine.
type span struct {
	row, col int
	scratch  [][]float64
	depth    int    // buffers of scratch in use
	raw      []byte // of a file
}

// temp borrows a buffer of n values until the matching call of release.
func (s *span) temp(n int) []float64 {
	if s.depth == len(s.scratch) {
		s.scratch = append(s.scratch, nil)
	}
	if cap(s.scratch[s.depth]) < n {
		s.scratch[s.depth] = make([]float64, n)
	}
	s.depth++
	return s.scratch[s.depth-1][:n]
}

func (s *span) release() { s.depth-- }

// at moves the span.
func (s *span) at(row, col int) *span {
	s.row, s.col = row, col
	return s
}

// node is a compiled expression. True and false are 1 and 0.
type node struct {
	// eval writes the values of the span's first len(dst) columns to dst. If the node is not onX, dst has length 1.
	// Each operation stores its result in memory, so the compiler cannot fuse it with the next one and every machine
	// computes the same bits.
	eval     func(s *span, dst []float64)
	onX, onY bool // whether the value depends on the column, on the row
	isBool   bool
	drawn    pixels // on which the value depends; nil for none
	indexed  bool   // whether the expression names ix, iy, nx or ny: then it is an array at points
	// spot returns the value at any place of the plane, and limit the bounds of the values in a box of it; nil for a
	// drawing.
	spot  func(s *spot) float64
	limit func(b box) bounds
	// narrow returns the node as it is in a box, and its bounds there; nil if it is the same in each box.
	narrow func(b box) (node, bounds)
	// callColumns is the number of columns of the mesh if the node calls a function, else 0.
	callColumns int
}

// pixels are those of a grid.
type pixels interface {
	// repeats reports whether the pixels around row iy of the mesh are known to be those around row iy-1.
	repeats(iy int) bool
}

// maxCached bounds the columns whose values a node caches. It is wider than usual meshes, and takes 1 MiB.
const maxCached = 1 << 17

// cached returns a node that evaluates n once for all rows if n calls a function and depends only on x. Otherwise it
// returns n.
func (n node) cached() node {
	if n.callColumns == 0 || n.callColumns > maxCached || !n.onX || n.onY {
		return n
	}
	eval, columns := n.eval, n.callColumns
	values := sync.OnceValue(func() []float64 {
		all := make([]float64, columns)
		eval(&span{}, all)
		return all
	})
	n.eval = func(s *span, dst []float64) { copy(dst, values()[s.col:]) }
	return n
}

// fill evaluates n over all of dst.
func (n node) fill(s *span, dst []float64) {
	if n.onX {
		n.eval(s, dst)
		return
	}
	n.eval(s, dst[:1])
	rowmath.Fill(dst, dst[0])
}

// at returns the value of n at one point.
func (n node) at(s *span, row, col int) float64 {
	s.row, s.col = row, col
	var v [1]float64
	n.eval(s, v[:])
	return v[0]
}

func constant(v float64) node {
	return node{eval: func(_ *span, dst []float64) { dst[0] = v }, spot: func(*spot) float64 { return v },
		limit: func(box) bounds { return exactly(v) }}
}

// column and row are the nodes of x and y, with that many intervals, and of ix and iy, which are multiples of them.

func column(a axis, unit float64) node {
	return node{onX: true, spot: func(s *spot) float64 { return a.at(s.x) / unit },
		limit: func(b box) bounds { return a.limit(b.left, b.right, unit) },
		eval: func(s *span, dst []float64) {
			rowmath.Count(dst, s.col, unit)
		}}
}

func row(a axis, unit float64) node {
	return node{onY: true, spot: func(s *spot) float64 { return a.at(s.y) / unit },
		limit: func(b box) bounds { return a.limit(b.top, b.bottom, unit) },
		eval:  func(s *span, dst []float64) { dst[0] = float64(s.row) / unit }}
}

// compared marks the value of n as true or false.
func compared(n node) node {
	n.isBool = true
	return n
}

func apply1(f func(float64) float64, limit func(bounds) bounds, a node) node {
	return node{onX: a.onX, onY: a.onY, callColumns: a.callColumns, eval: func(s *span, dst []float64) {
		a.fill(s, dst)
		for i, v := range dst {
			dst[i] = f(v)
		}
	}, spot: func(s *spot) float64 { return f(a.spot(s)) }, limit: func(b box) bounds { return limit(a.limit(b)) },
		narrow: narrowing1(func(a node) node { return apply1(f, limit, a) }, limit, a)}
}

// pairwise returns the node of an operation f on a and b with these limits. op replaces the values of a in dst by the
// results. If the operands may change places, with does so for values of one and the single value of the other.
func pairwise(a, b node, op func(dst, b []float64), with func(dst []float64, b float64),
	f func(a, b float64) float64, limit func(a, b bounds) bounds) node {
	if a.onY || b.onY {
		a, b = a.cached(), b.cached()
	}
	eval := func(s *span, dst []float64) {
		if with != nil && a.onX != b.onX {
			of, single := a, b
			if b.onX {
				of, single = b, a
			}
			of.eval(s, dst)
			t := s.temp(1)
			defer s.release()
			single.eval(s, t)
			with(dst, t[0])
			return
		}
		a.fill(s, dst)
		t := s.temp(len(dst))
		defer s.release()
		b.fill(s, t)
		op(dst, t)
	}
	return node{eval: eval, onX: a.onX || b.onX, onY: a.onY || b.onY, callColumns: max(a.callColumns, b.callColumns),
		spot:   func(s *spot) float64 { return f(a.spot(s), b.spot(s)) },
		limit:  func(x box) bounds { return limit(a.limit(x), b.limit(x)) },
		narrow: narrowing2(func(a, b node) node { return pairwise(a, b, op, with, f, limit) }, limit, a, b)}
}

func apply2(f func(a, b float64) float64, limit func(a, b bounds) bounds, a, b node) node {
	return pairwise(a, b, func(dst, t []float64) {
		for i, v := range dst {
			dst[i] = f(v, t[i])
		}
	}, nil, f, limit)
}

func add(a, b node) node {
	return pairwise(a, b, func(dst, t []float64) {
		for i, v := range dst {
			dst[i] = v + t[i]
		}
	}, func(dst []float64, b float64) { rowmath.Shift(dst, dst, b) },
		func(a, b float64) float64 { return a + b }, sumBounds)
}

func subtract(a, b node) node {
	return pairwise(a, b, func(dst, t []float64) {
		for i, v := range dst {
			dst[i] = v - t[i]
		}
	}, nil, func(a, b float64) float64 { return a - b }, differenceBounds)
}

func multiply(a, b node) node {
	return pairwise(a, b, func(dst, t []float64) {
		for i, v := range dst {
			dst[i] = v * t[i]
		}
	}, func(dst []float64, b float64) { rowmath.Scale(dst, dst, b) },
		func(a, b float64) float64 { return a * b }, productBounds)
}

// chain returns whether each of the values compares to the next one by an operation. It evaluates each only once: where
// chains stand within chains, the time would double with each of them.
func chain(values []node, ops []comparison) (n node) {
	for _, v := range values {
		n.onX, n.onY, n.callColumns = n.onX || v.onX, n.onY || v.onY, max(n.callColumns, v.callColumns)
	}
	for i, v := range values {
		if n.onY {
			values[i] = v.cached()
		}
	}
	n.eval = func(s *span, dst []float64) {
		left, right := s.temp(len(dst)), s.temp(len(dst))
		defer s.release()
		defer s.release()
		values[0].fill(s, left)
		for i, op := range ops {
			values[i+1].fill(s, right)
			for j, v := range left {
				if holds := op.holds(v, right[j]); i == 0 || holds == 0 {
					dst[j] = holds
				}
			}
			left, right = right, left
		}
	}
	n.spot = func(s *spot) float64 {
		v := values[0].spot(s)
		for i, op := range ops {
			next := values[i+1].spot(s)
			if op.holds(v, next) == 0 {
				return 0
			}
			v = next
		}
		return 1
	}
	n.limit = func(b box) bounds {
		all, v := bounds{lo: 1, hi: 1}, values[0].limit(b)
		for i, op := range ops {
			next := values[i+1].limit(b)
			all = minBounds(all, op.bounds(v, next))
			v = next
		}
		return all
	}
	n.narrow = func(b box) (node, bounds) {
		limit := n.limit(b)
		if limit.decided() || !slices.ContainsFunc(values, func(v node) bool { return v.narrow != nil }) {
			return n, limit
		}
		narrowed := make([]node, len(values))
		for i, v := range values {
			narrowed[i], _ = v.within(b)
		}
		return chain(narrowed, ops), limit
	}
	return n
}

// choose evaluates one branch where bounds of the condition over a part of a row tell which. Elsewhere it evaluates
// both and discards the values of the branch not taken, even NaN.
func choose(cond, yes, no node) node {
	return node{
		spot: func(s *spot) float64 {
			before := s.branches
			taken := cond.spot(s)
			s.branches = before // only the outcome matters
			if s.decide(taken) != 0 {
				return yes.spot(s)
			}
			return no.spot(s)
		},
		limit: func(b box) bounds {
			return chosen(cond.limit(b), func() bounds { return yes.limit(b) }, func() bounds { return no.limit(b) })
		},
		narrow: func(b box) (node, bounds) {
			outcome, limit := cond.within(b)
			switch {
			case limit.lo > 0:
				return yes.within(b)
			case limit.hi < 1:
				return no.within(b)
			}
			first, one := yes.within(b)
			second, other := no.within(b)
			limit = chosen(limit, func() bounds { return one }, func() bounds { return other })
			return choose(outcome, first, second), limit
		},
		onX: cond.onX || yes.onX || no.onX, onY: cond.onY || yes.onY || no.onY, isBool: yes.isBool,
		callColumns: max(cond.callColumns, yes.callColumns, no.callColumns),
		eval:        func(s *span, dst []float64) { fillChosen(s, dst, cond, yes, no) },
	}
}

// fillChosen writes the values of the span's first len(dst) columns of a choice to dst.
func fillChosen(s *span, dst []float64, cond, yes, no node) {
	if !cond.onX {
		var c [1]float64
		if cond.eval(s, c[:]); c[0] != 0 {
			no = yes
		}
		no.fill(s, dst)
		return
	}
	cond.eachPart(s, len(dst), func(from, to int, b bounds) {
		switch {
		case b.lo > 0:
			yes.fill(s, dst[from:to])
		case b.hi < 1:
			no.fill(s, dst[from:to])
		default:
			fillBoth(s, dst[from:to], cond, yes, no)
		}
	})
}

// markColumns is the number of columns from which on bounds are looked at. To find them takes as long as a few values.
const markColumns = 16

// open reports whether a condition with these bounds may be true as well as false.
func (a bounds) open() bool { return a.lo <= 0 && a.hi >= 1 }

// limitIn returns the bounds of a condition at the span's first columns: open ones for a few columns, and for a
// condition that is known at points alone.
func (n node) limitIn(s *span, columns int) bounds {
	if columns < markColumns/2 || !n.covers() {
		return bounds{lo: 0, hi: 1}
	}
	y := float64(s.row)
	return n.limit(box{float64(s.col), float64(s.col + columns - 1), y, y})
}

// eachPart calls do for parts [from, to) of the span's first columns, with s there, and the bounds of a condition in
// them. It halves a part with open bounds while that decides one half: bounds of a condition that changes everywhere
// would take longer than its values.
func (n node) eachPart(s *span, columns int, do func(from, to int, b bounds)) {
	first := s.col
	limit := func(from, to int) bounds {
		s.col = first + from
		return n.limitIn(s, to-from)
	}
	var halve func(from, to int, b bounds)
	halve = func(from, to int, b bounds) {
		if b.open() && to-from >= markColumns {
			middle := (from + to) / 2
			left, right := limit(from, middle), limit(middle, to)
			if !left.open() || !right.open() {
				halve(from, middle, left)
				halve(middle, to, right)
				return
			}
		}
		s.col = first + from
		do(from, to, b)
	}
	halve(0, columns, limit(0, columns))
	s.col = first
}

// fillBoth evaluates the condition and both branches.
func fillBoth(s *span, dst []float64, cond, yes, no node) {
	yes.fill(s, dst)
	c, n := s.temp(len(dst)), s.temp(len(dst))
	defer s.release()
	defer s.release()
	cond.fill(s, c)
	no.fill(s, n)
	for i := range dst {
		if c[i] == 0 {
			dst[i] = n[i]
		}
	}
}
