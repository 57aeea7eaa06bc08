package problem

// A source and a screening belong to the free part of the plane: where no area is fixed and there is material. A point
// has their mean over the square that belongs to it, of which the rest counts as 0. What the square of a fixed point
// has is its region's.

// share is an input as it counts in the free part of the plane. What is known at points alone counts there by the part
// of a square that is free.
type share struct {
	node   node // of the values, or else of the free part
	values bool // node has the values
	spread bool // squares may differ from their points
	cuts   *edgeCache[edged]
}

// shareOf returns the share of a part.
func (p *Problem) shareOf(q part) (s share) {
	if q.zero() {
		return share{node: constant(0), values: true}
	}
	s.node, s.values, s.cuts = constant(1), q.covers(), newEdgeCache[edged](p.mesh.NY)
	if s.values {
		s.node = q.node
	}
	if p.fixed.covers() && !p.fixed.none() {
		s.node = choose(p.fixed.node, constant(0), s.node)
	}
	if p.porous && p.coefficient.covers() {
		s.node = choose(compared(apply1(func(a float64) float64 { return truth(a == 0) }, isZero, p.coefficient.node)),
			constant(0), s.node)
	}
	s.spread = s.node.onX || s.node.onY
	return s
}

// isZero are the bounds of whether a number is 0.
func isZero(a bounds) bounds {
	return comparisonOf("==").bounds(a, exactly(0))
}

// overSquares turns values at the points of row iy from column col on into those of their squares, where areas have
// edges.
func (p *rows) overSquares(s share, iy, col int, dst []float64) error {
	if !s.spread {
		return nil
	}
	if cells := cellsOf(s.node); cells != nil {
		p.cellSquares(cells, iy, col, dst)
		return nil
	}
	m := p.mesh
	top, bottom := around(iy, m.NY, m.PeriodicRows())
	square := func(lo, hi int) box {
		left, _ := around(lo, m.NX, m.PeriodicColumns())
		_, right := around(hi-1, m.NX, m.PeriodicColumns())
		return box{left, right, top, bottom}
	}
	list, err := s.cuts.of(iy, col, col+len(dst), m.NX, func(lo, hi int) (list []edged, err error) {
		a := p.newArea()
		a.direct(true)
		err = s.node.eachJump(lo, hi, square, func(n node, ix int) error {
			b := square(ix, ix+1)
			a.take(n)
			list = append(list, edged{ix, a.mean(b.left, b.right, b.top, b.bottom)})
			return nil
		})
		return list, err
	})
	if err != nil {
		return err
	}
	here := &material{}
	if !p.fixed.none() && p.fixed.covers() {
		if here, err = p.material(iy); err != nil {
			return err
		}
	}
	at := col
	clearFixed := func(end int) {
		for ix := max(at, here.first); ix < min(end, here.end); ix++ {
			if here.fixed[ix] {
				dst[ix-col] = 0
			}
		}
	}
	for _, e := range list {
		if e.ix < at || e.ix >= col+len(dst) {
			continue
		}
		clearFixed(e.ix)
		at = e.ix + 1
		if s.values {
			dst[e.ix-col] = e.v
		} else {
			dst[e.ix-col] = float64(e.v * dst[e.ix-col])
		}
	}
	clearFixed(col + len(dst))
	return nil
}
