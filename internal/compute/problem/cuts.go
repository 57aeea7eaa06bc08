package problem

import "jacobi/internal/compute/rowmath"

// The edge of a fixed area cuts the face between a free point and a fixed one. A cut at the part theta of the face,
// from the free point, makes it as much shorter, and its coefficient c/theta (Gibou, Fedkiw, Cheng and Kang, Journal of
// Computational Physics 176, 2002): symmetric, and of second order. c is that of the free part of the strip. The value
// is that of the area at its edge, and not that of the fixed point.

// inward is how far within the edge of a fixed area, in spacings, its value is taken: rounding may decide otherwise for
// problem.initial than for problem.fixed on the edge itself.
const inward = 1e-6

// cut is what the edge of a fixed area makes of a face.
type cut struct {
	from, to float64 // the free part
	edge     spot    // a place of the fixed area at the edge
}

// cutFaces finds the faces of row iy that the edges of fixed areas cut: to the next column, or else to the next row,
// whose points are those of below. whole has the coefficients of whole faces. The lift of a face is added to the step
// from its point to the next one, as the edge has another value than the fixed point.
func (p *Problem) cutFaces(iy int, x bool, here, below *material, whole []float64) (list []crossing, err error) {
	edge := line{along: x, widthless: p.widthless}
	next := int(truth(x))
	lo, hi := p.columnsOfFaces(x)
	var fixed, coefficient node // in the strips of all faces
	for ix := max(lo, min(here.first, below.first)-next); ix < min(hi, max(here.end, below.end)); ix++ {
		if here.fixed[ix] == below.fixed[ix+next] {
			continue
		}
		if fixed.spot == nil {
			fixed, _ = p.fixed.node.within(p.strip(iy, x, lo, hi))
			coefficient = p.narrowed(p.strip(iy, x, lo, hi))
		}
		b := p.strip(iy, x, ix, ix+1)
		edge.n, _ = fixed.within(b)
		from, to := b.left, b.right
		edge.other = float64(iy)
		if !x {
			from, to = b.top, b.bottom
			edge.other = float64(ix)
		}
		c, face := edge.cut(from, to, here.fixed[ix]), crossing{edged: edged{ix: ix}}
		if face.v, err = p.freePart(coefficient, iy, ix, x, c, here.fixed[ix], whole[ix]); err != nil {
			return nil, err
		}
		if face.lift, err = p.lift(iy, ix, x, here.fixed[ix], c); err != nil {
			return nil, err
		}
		list = append(list, face)
	}
	return list, nil
}

// narrowed returns the coefficient as it is in a box, if it is known there.
func (p *Problem) narrowed(b box) node {
	if !p.coefficient.covers() {
		return p.coefficient.node
	}
	n, _ := p.coefficient.node.within(b)
	return n
}

// freePart returns the coefficient of the free part of a face that the edge of a fixed area cuts, at its first end or
// else at its second one, over that part. It is that of the point, a, if the coefficient is known at points alone.
func (p *Problem) freePart(n node, iy, ix int, x bool, c cut, first bool, a float64) (float64, error) {
	l, b, jumps := p.newArea(), p.strip(iy, x, ix, ix+1), false
	l.direct(x)
	from, to, low, high := b.left, b.right, b.top, b.bottom
	l.along.other = float64(iy)
	if !x {
		from, to, low, high = b.top, b.bottom, b.left, b.right
		l.along.other = float64(ix)
	}
	l.whole(from, to, low, high)
	if p.coefficient.covers() {
		n, _ = n.within(b)
		l.take(n)
		if jumps = n.jumps(b.between(x, c.from, c.to)); jumps {
			before, after := p.squares(iy, ix, x)
			if first {
				before = c.from
			} else {
				after = c.to
			}
			var err error
			if a, err = l.conductance(c.from, c.to, low, high, before, after); err != nil {
				return 0, err
			}
		} else {
			ends := [2]float64{l.along.value(c.from), l.along.value(c.to)}
			for i, at := range [...]float64{c.from, c.to} {
				if err := p.checkCoefficient(ends[i], l.along.place(at)); err != nil {
					return 0, err
				}
			}
			a = rowmath.Mean(ends[0], ends[1])
		}
	}
	if !jumps && p.turn.on {
		l.along.other = halfway(low, high)
		a *= l.share(halfway(c.from, c.to))
	}
	return a / (c.to - c.from), nil
}

// cut cuts the part of a line between two points, of which the first or else the second is fixed, at the edge of what
// is fixed next to the free one.
func (l *line) cut(from, to float64, first bool) cut {
	pieces := l.pieces(from, to)
	if first {
		n := len(pieces) - 1
		last := pieces[n]
		if l.of(last) != 0 {
			last.from = to
		} else if n > 0 && last.length() > narrowest {
			if at, ok := l.thinEdge(to, last.from+narrowest); ok {
				return cut{min(at, to-leastCut), to, l.place(at)}
			}
		}
		at := min(last.from, to-leastCut)
		return cut{at, to, l.place(max(from, last.from-inward))}
	}
	begin := pieces[0]
	if l.of(begin) != 0 {
		begin.to = from
	} else if len(pieces) > 1 && begin.length() > narrowest {
		if at, ok := l.thinEdge(from, begin.to-narrowest); ok {
			return cut{from, max(at, from+leastCut), l.place(at)}
		}
	}
	at := max(begin.to, from+leastCut)
	return cut{from, at, l.place(min(to, begin.to+inward))}
}

// lift returns by how much the step from a point to the next one is larger as the edge of a fixed area has another
// value than its point: the first one, or else the second.
func (p *Problem) lift(iy, ix int, x, first bool, c cut) (float64, error) {
	q := p.initial
	if !q.covers() || q.constant() {
		return 0, nil
	}
	if !first && x {
		ix++
	} else if !first {
		iy++
	}
	if iy, ix = p.canonical(iy, ix); p.wallColumn(ix) || p.fixedWallRow(iy) {
		return 0, nil
	}
	point := q.node.at(&span{}, iy, ix)
	edge := q.node.spot(&c.edge)
	if n := p.regionAt(&c.edge); n >= 0 && p.drawing == nil {
		edge = *p.regions.list[n].Value
	}
	if err := p.finite(q, iy, ix, edge); err != nil {
		return 0, err
	}
	d := p.round(edge) - p.round(point)
	if first {
		d = -d
	}
	return d, nil
}

// canonical returns the point that the point at row iy and column ix copies, or the point itself.
func (p *Problem) canonical(iy, ix int) (row, column int) {
	row, _ = p.mesh.Canonical(iy)
	if n := p.mesh.NX - 2; p.mesh.PeriodicColumns() {
		ix = 1 + (ix-1+n)%n
	}
	return row, ix
}

// between returns the part of a box from one place to another along x, or else along y.
func (b box) between(x bool, from, to float64) box {
	if x {
		b.left, b.right = from, to
	} else {
		b.top, b.bottom = from, to
	}
	return b
}
