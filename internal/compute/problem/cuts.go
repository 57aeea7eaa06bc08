package problem

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

// cutFaces works out the faces of row iy that the edges of fixed areas cut: to the next column, or else to the next
// row, whose points are those of below. dst has the coefficients of whole faces. It returns what is added to the step
// from each point to the next one, as the edge has another value than the fixed point; nil for nothing.
func (p *Problem) cutFaces(iy int, x bool, here, below *material, dst []float64) (lifts []float64, err error) {
	edge, a := line{along: x}, p.newArea()
	a.direct(x)
	next := 0
	if x {
		next, below = 1, here
	}
	lo, hi := p.columnsOfFaces(x)
	narrowed, fixed, coefficient := false, p.fixed.node, p.coefficient.node // in the strips of all faces
	for ix := lo; ix < hi; ix++ {
		if here.fixed[ix] && below.fixed[ix+next] {
			dst[ix] = 0 // it lies within the area
		}
		if here.fixed[ix] == below.fixed[ix+next] {
			continue
		}
		if !narrowed {
			narrowed = true
			fixed, _ = fixed.within(p.strip(iy, x, lo, hi))
			if p.coefficient.covers() {
				coefficient, _ = coefficient.within(p.strip(iy, x, lo, hi))
			}
		}
		b := p.strip(iy, x, ix, ix+1)
		edge.n, _ = fixed.within(b)
		from, to, low, high := b.left, b.right, b.top, b.bottom
		edge.other, a.along.other = float64(iy), float64(iy)
		if !x {
			from, to, low, high = b.top, b.bottom, b.left, b.right
			edge.other, a.along.other = float64(ix), float64(ix)
		}
		c := edge.cut(from, to, here.fixed[ix])
		if p.coefficient.covers() { // otherwise dst has the coefficient at the free point
			n, _ := coefficient.within(b)
			a.take(n)
			if n.jumps(b.between(x, c.from, c.to)) {
				before, after := p.squares(iy, ix, x)
				if here.fixed[ix] {
					before = c.from
				} else {
					after = c.to
				}
				if dst[ix], err = a.conductance(c.from, c.to, low, high, before, after); err != nil {
					return nil, err
				}
			} else {
				ends := [2]float64{a.along.value(c.from), a.along.value(c.to)}
				for i, at := range [...]float64{c.from, c.to} {
					if err := p.checkCoefficient(ends[i], a.along.place(at)); err != nil {
						return nil, err
					}
				}
				dst[ix] = mean(ends[0], ends[1])
			}
		}
		dst[ix] /= c.to - c.from
		lift, err := p.lift(iy, ix, x, here.fixed[ix], c)
		if err != nil {
			return nil, err
		}
		if lift != 0 && lifts == nil {
			lifts = make([]float64, len(dst))
		}
		if lift != 0 {
			lifts[ix] = lift
		}
	}
	p.wrapFaces(x, dst)
	if lifts != nil {
		p.wrapFaces(x, lifts)
	}
	return lifts, nil
}

// cut cuts the part of a line between two points, of which the first or else the second is fixed.
func (l *line) cut(from, to float64, first bool) cut {
	pieces := l.pieces(from, to)
	if first {
		last := pieces[len(pieces)-1]
		if l.of(last) != 0 {
			last.from = to
		}
		at := min(last.from, to-leastCut)
		return cut{at, to, l.place(max(from, last.from-inward))}
	}
	begin := pieces[0]
	if l.of(begin) != 0 {
		begin.to = from
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
