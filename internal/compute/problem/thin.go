package problem

import (
	"math"
	"regexp"
	"slices"

	"jacobi/internal/compute/results"
)

// A fixed area may lie between the two points of a face, as a thin electrode does. It cuts the face from either of them
// as it cuts one between a free point and a fixed one (cuts.go): each has its own coefficient over the part of the face
// that leads to the area, in its diagonal and, times the value there, in its right-hand side. The points do not conduct
// to each other.

// pinFaces adds to list the areas in the faces of row iy: to the next column, or else to the next row, whose points are
// those of below. Their points do not conduct to each other.
func (p *Problem) pinFaces(iy int, x bool, here, below *material, list []crossing) ([]crossing, error) {
	next, cuts := int(truth(x)), len(list)
	l := line{along: x, widthless: p.widthless}
	var coefficient node
	lo, hi := p.columnsOfFaces(x)
	lines := func(lo, hi int) box {
		if x {
			return box{float64(lo), float64(hi), float64(iy), float64(iy)}
		}
		return box{float64(lo), float64(hi - 1), float64(iy), float64(iy + 1)}
	}
	err := p.fixed.node.eachJump(lo, hi, lines, func(n node, ix int) error {
		jx, jy := ix+next, iy+1-next
		if here.fixed[ix] || below.fixed[jx] ||
			(p.wallColumn(ix) || p.wallRow(iy)) && (p.wallColumn(jx) || p.wallRow(jy)) {
			return nil
		}
		from := float64(iy)
		if l.n, l.other = n, float64(ix); x {
			from, l.other = l.other, from
		}
		first, last, ok := l.extent(from, from+1)
		if !ok {
			return nil
		}
		if len(list) == cuts {
			coefficient = p.narrowed(p.strip(iy, x, lo, hi))
		}
		pin, inside := new(results.Pin), min(inward, (last-first)/2)
		for i, c := range [2]cut{{from, max(first, from+leastCut), l.place(first + inside)},
			{min(last, from+1-leastCut), from + 1, l.place(last - inside)}} {
			row, column, a := iy, ix, here.a[ix]
			if i > 0 {
				row, column, a = jy, jx, below.a[jx]
			}
			var err error
			if pin.C[i], err = p.freePart(coefficient, iy, ix, x, c, i > 0, a); err != nil {
				return err
			}
			pin.Place[i], pin.Region[i] = [2]float64{c.edge.x, c.edge.y}, p.regionAt(&c.edge)
			if pin.U[i], err = p.valueAt(c.edge, pin.Region[i], row, column); err != nil {
				return err
			}
		}
		list = append(list, crossing{edged{ix, 0}, 0, pin})
		return nil
	})
	return list, err
}

// equality matches conditions that may hold on a line without width.
var equality = regexp.MustCompile(`==|<= *0+(\.0*)?($|[^.0-9])`)

// extent returns the first and the last place of a line between two points at which the condition holds, if there are
// any.
func (l *line) extent(from, to float64) (first, last float64, ok bool) {
	first, last = to, from
	for _, p := range l.pieces(from, to) {
		if p.branches != 0 {
			first, last = min(first, p.from), p.to
		}
	}
	if first < last {
		return first, last, true
	}
	if first, ok = l.thinEdge(from, to); !ok {
		return 0, 0, false
	}
	if last, ok = l.thinEdge(to, from); !ok {
		last = first
	}
	return first, last, true
}

// thinEdge returns the edge of an area on a line towards a place, before another one, which has no width that pieces
// tell apart.
func (l *line) thinEdge(from, to float64) (at float64, ok bool) {
	halvings := mostHalvings
	// At the points themselves it does not hold, and there a periodic plane may go on at its other end.
	if at, ok = l.seek(math.Nextafter(from, to), math.Nextafter(to, from), &halvings); !ok || l.value(at) == 0 {
		return at, ok
	}
	for range exact {
		if middle := halfway(from, at); l.value(middle) != 0 {
			at = middle
		} else {
			from = middle
		}
	}
	return at, true
}

// narrowest is the width in spacings from which on pieces tell areas apart, at the least.
const narrowest = 0x1p-17

// mostHalvings bounds the halvings of a line in search of a place at which a condition holds.
const mostHalvings = 256

// seek returns the first place that it finds on the way from one place to another.
func (l *line) seek(from, to float64, halvings *int) (at float64, ok bool) {
	b := box{min(from, to), max(from, to), l.other, l.other}
	if !l.along {
		b = box{l.other, l.other, b.left, b.right}
	}
	if *halvings == 0 || l.n.limit(b).hi == 0 {
		return 0, false
	}
	*halvings--
	middle := halfway(from, to)
	if middle == from || middle == to {
		if l.value(from) == 0 && l.value(to) != 0 {
			return to, true
		}
		return from, l.widthless || l.value(from) != 0
	}
	if at, ok := l.seek(from, middle, halvings); ok {
		return at, true
	}
	return l.seek(middle, to, halvings)
}

// valueAt returns the value that a fixed area has at a place: that of its region, or of the nearest point if values are
// known at points alone.
func (p *Problem) valueAt(at spot, region, iy, ix int) (v float64, err error) {
	iy, ix = p.canonical(iy, ix)
	switch q := p.initial; {
	case region >= 0:
		v = *p.regions.list[region].Value
	case q.covers():
		v = q.node.spot(&at)
	case q.file != nil:
		v, err = q.file.exact(iy, ix)
	default:
		v = q.node.at(&span{}, iy, ix)
	}
	if err == nil {
		err = p.finite(p.initial, iy, ix, v)
	}
	return p.round(v), err
}

// eachPin calls f with what fixed areas in the faces of a point of row iy are to it, by the direction of the face: the
// coefficient to the area, the square of the spacing, over r with grid.axis, and the value.
func (p *Problem) eachPin(st *stencil, iy, ix int, f func(direction int, c, h2, u float64)) {
	side := func(pins []*results.Pin, at, direction, end int, h float64, middle spot) {
		if pins == nil || pins[at] == nil {
			return
		}
		if pin := pins[at]; pin.C[end] > 0 {
			f(direction, pin.C[end], float64(h*h)/p.turn.radius(middle), pin.U[end])
		}
	}
	end := func(second bool) int { return int(truth(second)) }
	last, hx, hy := p.mesh.NX-1, p.numbers.hx, p.numbers.hy
	before, after := max(ix-1, 0), min(ix, last-1)
	side(st.pinX, before, west, end(ix > 0), hx, p.middle(iy, before, 0.5, 0))
	side(st.pinX, after, east, end(ix == last), hx, p.middle(iy, after, 0.5, 0))
	side(st.above.pinY, ix, north, end(iy > 0), hy, p.middle(max(iy-1, 0), ix, 0, 0.5))
	side(st.pinY, ix, south, 0, hy, p.middle(min(iy, p.mesh.NY-2), ix, 0, 0.5))
}

// pins reports whether there are fixed areas in the faces of the points of a row.
func (st *stencil) pins() bool {
	return st.faces != nil && st.pinX != nil || st.pinY != nil || st.above != nil && st.above.pinY != nil
}

// mirrored returns pins as they are seen from the other end.
func mirrored(pins []*results.Pin) []*results.Pin {
	pins = slices.Clone(pins)
	for i, pin := range pins {
		if pin != nil {
			pins[i] = pin.Turned()
		}
	}
	return pins
}
