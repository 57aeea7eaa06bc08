package problem

import (
	"fmt"
	"math"
	"slices"

	"jacobi/configs"
	"jacobi/solver"
)

// What an expression gives is an area of the plane, and its edges count where they lie. Half a spacing around a line
// between two neighbours is the strip that belongs to their face. It is cut into lanes along the line: in a lane, what
// lies between the two points is in series, and the lanes conduct side by side. Half a spacing around a point is the
// square that belongs to it, over which sources and screenings are averaged. Where nothing jumps, a face has the
// harmonic mean of the values at its two points, and a square the value at its point.

// lanes is the number of lanes in a whole strip, or square, at least, where the lines along it differ.
const lanes = 8

// leastCut is the least part of a face, from its free point, at which the edge of a fixed area cuts it. An edge that
// lies nearer counts as if it lay there: that moves it by less than a thousandth of a spacing.
const leastCut = 0x1p-10

// area is a rectangle of the plane and an expression in it. Lines are followed along x, or else along y.
type area struct {
	p            *Problem
	along, cross line
	beyond       line // along the strip, and half a spacing further
	middle       spot // of the whole strip or square
	breaks       []float64
}

func (p *Problem) newArea() *area { return &area{p: p} }

// take has the lines follow an expression.
func (a *area) take(n node) { a.along.n, a.cross.n = n, n }

// direct has lines followed along x, or else along y.
func (a *area) direct(x bool) { a.along.along, a.cross.along = x, !x }

// eachLane calls f with the width of each lane of a strip, and its pieces. The strip reaches from one place to another
// along the lines, and from low to high across them. It is cut where lines across it jump; a band between two cuts in
// which the lines along it are the same is one lane, and others are cut evenly.
func (a *area) eachLane(from, to, low, high float64, f func(width float64, pieces []piece) error) error {
	a.breaks = append(a.breaks[:0], low)
	var last []piece
	for _, at := range [...]float64{from, halfway(from, to), to} {
		if last != nil && a.cross.has(last, at) && (len(last) > 1 || !a.cross.jumpsAt(at, low, high)) {
			continue
		}
		a.cross.other = at
		last = a.cross.pieces(low, high)
		for _, c := range last[1:] {
			a.breaks = append(a.breaks, c.from)
		}
	}
	slices.Sort(a.breaks)
	a.breaks = append(a.breaks, high)
	for i, end := range a.breaks[1:] {
		begin := a.breaks[i]
		if end-begin < crumb {
			a.breaks[i+1] = begin
			continue
		}
		if err := a.band(from, to, begin, end, f); err != nil {
			return err
		}
	}
	return nil
}

// band calls f with the lanes of a band.
func (a *area) band(from, to, begin, end float64, f func(width float64, pieces []piece) error) error {
	l, inside := &a.along, min(near, (end-begin)/4)
	l.rough, l.other = false, halfway(begin, end)
	pieces := l.pieces(from, to)
	if l.has(pieces, begin+inside) && l.has(pieces, end-inside) {
		return f(end-begin, pieces)
	}
	n := math.Ceil(float64((end - begin) * lanes))
	width := (end - begin) / n
	l.rough = true
	for k := 0.5; k < n; k++ {
		l.other = begin + float64(k*width)
		if err := f(width, l.pieces(from, to)); err != nil {
			return err
		}
	}
	return nil
}

// whole names the strip, or the square, of which parts are looked at: from one place to another along the lines, and
// from low to high across them.
func (a *area) whole(from, to, low, high float64) {
	l := a.along
	l.other = halfway(low, high)
	a.middle = l.place(halfway(from, to))
}

// share returns what a place of the lines counts for as it lies further from grid.axis than the middle, or nearer.
func (a *area) share(at float64) float64 { return a.p.turn.share(a.along.place(at), a.middle) }

// conductance returns the coefficient of a face whose strip has jumps. The squares of its points reach from before to
// after.
func (a *area) conductance(from, to, low, high, before, after float64) (c float64, err error) {
	a.beyond.n = node{}
	err = a.eachLane(from, to, low, high, func(width float64, pieces []piece) error {
		resistance, hole := 0.0, false
		for _, piece := range pieces {
			v := a.along.of(piece)
			if err := a.p.checkCoefficient(v, a.along.place(piece.middle())); err != nil {
				return err
			}
			hole = hole || v == 0
			resistance += piece.length() / v
		}
		if hole && a.beyond.n.spot == nil {
			whole := box{low, high, before, after}
			if a.along.along {
				whole = box{before, after, low, high}
			}
			a.beyond.n, _ = a.p.coefficient.node.within(whole)
		}
		if hole {
			width *= a.beside(from, to, before, after)
		} else {
			width *= (to - from) / resistance
		}
		c += float64(width * a.share(halfway(from, to)))
		return nil
	})
	return c / (high - low), err
}

// beside returns the coefficient of a lane that a hole meets, 0 if the hole parts its points. It conducts, as the
// material in it does, if the hole leaves its middle open, as at the face between two cells that are cut. The hole may
// cover a point, unless there is material again on the other side of it, within half a spacing.
func (a *area) beside(from, to, before, after float64) float64 {
	l := &a.beyond
	l.along, l.other, l.rough = a.along.along, a.along.other, a.along.rough
	pieces := l.pieces(before, after)
	middle := slices.IndexFunc(pieces, func(p piece) bool { return p.to > halfway(from, to) })
	open := func(i int) bool { return l.of(pieces[i]) != 0 }
	if !open(middle) {
		return 0
	}
	first, last := middle, middle
	for first > 0 && open(first-1) {
		first--
	}
	for last+1 < len(pieces) && open(last+1) {
		last++
	}
	for i := range pieces {
		inside := i < first && pieces[first].from > from || i > last && pieces[last].to < to
		if inside && open(i) {
			return 0
		}
	}
	length, resistance := 0.0, 0.0
	for _, p := range pieces[first : last+1] {
		if part := min(p.to, to) - max(p.from, from); part > 0 {
			length += part
			resistance += part / l.of(p)
		}
	}
	return length / resistance
}

// mean returns the mean of the expression over a rectangle.
func (a *area) mean(from, to, low, high float64) float64 {
	sum := 0.0
	a.whole(from, to, low, high)
	_ = a.eachLane(from, to, low, high, func(width float64, pieces []piece) error { // f returns no error
		for _, piece := range pieces {
			sum += float64(float64(float64(width*piece.length())*a.along.of(piece)) * a.share(piece.middle()))
		}
		return nil
	})
	return sum / (to - from) / (high - low)
}

// place returns a place of the line.
func (l *line) place(at float64) spot {
	if l.along {
		return spot{x: at, y: l.other}
	}
	return spot{x: l.other, y: at}
}

// checkCoefficient refuses a value of the coefficient at a place.
func (p *Problem) checkCoefficient(a float64, at spot) error {
	if a == 0 || a >= configs.LeastCoefficient && a <= configs.MostCoefficient {
		return nil
	}
	nx, ny := intervals(p.mesh)
	return fmt.Errorf("%s %q at x = %g, y = %g: %v; %s", p.coefficient.key, p.coefficient.text, at.x/nx, at.y/ny, a,
		valuesAllowed)
}

// around returns what belongs to number i of n points in a row or column: half a spacing to either side, within the
// mesh.
func around(i, n int, periodic bool) (from, to float64) {
	from, to = float64(i)-0.5, float64(i)+0.5
	if !periodic {
		from, to = max(from, 0), min(to, float64(n-1))
	}
	return from, to
}

// eachJump calls f for the numbers in [lo, hi) for whose part of the plane the expression may jump, with the expression
// as it is there. region returns the part of several.
func (n node) eachJump(lo, hi int, region func(lo, hi int) box, f func(n node, i int) error) error {
	if lo >= hi {
		return nil
	}
	n, limit := n.within(region(lo, hi))
	switch {
	case !n.mayJump(limit):
		return nil
	case hi-lo == 1:
		return f(n, lo)
	}
	middle := (lo + hi) / 2
	if err := n.eachJump(lo, middle, region, f); err != nil {
		return err
	}
	return n.eachJump(middle, hi, region, f)
}

// covers reports whether q is known at all places of the plane, and not only at points.
func (q part) covers() bool { return q.file == nil && q.node.covers() }

// outsideMarks returns which points of row iy, which is one of a fixed wall or of the interior, lie outside the
// material: those of which no face conducts. Fixed points are not among them.
func (p *rows) outsideMarks(iy int) ([]bool, error) {
	marks, err := p.outsides.at(iy, &p.idle.outsides, p.newOutside)
	return *marks, err
}

func (p *rows) newOutside(iy int, to *[]bool) error {
	here, err := p.material(iy)
	if err != nil {
		return err
	}
	marks := sized(*to, p.mesh.NX)
	*to = marks
	for ix, a := range here.a {
		marks[ix] = a == 0
	}
	if p.coefficient.covers() {
		if err := p.insulated(iy, marks); err != nil {
			return err
		}
	}
	for ix, fixed := range here.fixed {
		marks[ix] = marks[ix] && !fixed
	}
	return nil
}

// insulated sets the marks of points of row iy of which no face conducts.
func (p *rows) insulated(iy int, marks []bool) error {
	f, err := p.faces(iy)
	if err != nil {
		return err
	}
	above := f.none()
	if iy > 0 || p.mesh.Walls.Top == solver.Neumann {
		if above, err = p.above(iy); err != nil {
			return err
		}
	}
	last, st := len(marks)-1, &stencil{faces: f, above: above}
	for ix := range marks {
		marks[ix] = f.east[max(ix-1, 0)] == 0 && f.east[min(ix, last-1)] == 0 && f.south[ix] == 0 &&
			above.south[ix] == 0
		if marks[ix] && st.pins() {
			p.eachPin(st, iy, ix, func(int, float64, float64, float64) { marks[ix] = false })
		}
	}
	if p.mesh.PeriodicColumns() {
		marks[0], marks[last] = marks[last-1], marks[1]
	}
	return nil
}

// edgeRule is the version of what this file, cuts.go, thin.go, shares.go and sides.go work out, and of the faces beside
// fixed points.
const edgeRule = 3

// EdgeRule returns the version of the rule by which the edges of areas count, and faces beside fixed points, or 0 for a
// problem without either.
func (p *Problem) EdgeRule() int {
	whole := box{0, float64(p.mesh.NX - 1), 0, float64(p.mesh.NY - 1)}
	if !p.fixed.none() && p.weighted ||
		p.coefficient.covers() && p.coefficient.node.jumps(whole) {
		return edgeRule
	}
	shares := []share{p.density, p.absorption}
	for _, s := range p.sides {
		shares = append(shares, s.inflow, s.hold)
	}
	for _, s := range shares {
		if s.spread && s.node.jumps(whole) {
			return edgeRule
		}
	}
	return 0
}
