package problem

import (
	"context"
	"math"
	"slices"
)

const (
	outlineCells  = 512     // rows and columns of points that are looked at
	outlinePoints = 1 << 21 // points of their rows, which take time where arrays are read
	mostKnots     = 1 << 16
	maxOutlines   = 4000
	leastContrast = 1.5 // of two coefficients between which there is an interface
)

// Outlines returns the lines around fixed areas and areas outside the material, and the interfaces of materials: x and
// y of both ends, in points of the mesh. It looks at evenly spread points. Between two that look different a line
// passes where the area has its edge, or halfway if only points are known. If there are too many lines to help, it
// returns none. It stops when ctx ends.
func (p *Problem) Outlines(ctx context.Context) ([][4]float64, error) {
	if p.fixed.none() && p.coefficient.constant() {
		return nil, nil
	}
	o := &outliner{p: p, columns: sides(p.mesh.NX, outlineCells), rows: sides(p.mesh.NY, outlineCells),
		knots: make([]knot, 1), arrays: !p.fixed.covers() || !p.coefficient.covers()}
	if o.arrays {
		o.rows = sides(p.mesh.NY, min(outlineCells, max(2, outlinePoints/p.mesh.NX)))
	}
	o.looks = make([]look, len(o.columns)*len(o.rows))
	o.edges = make([]bool, len(o.looks))
	if o.arrays {
		if err := o.lookAtAll(ctx); err != nil {
			return nil, err
		}
	} else {
		o.find(0, len(o.columns)-1, 0, len(o.rows)-1)
		o.findSeams()
	}
	above := make([]int32, len(o.columns))
	for j := range len(o.rows) - 1 {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		if o.cells(j, above); len(o.knots) > mostKnots {
			return nil, nil
		}
	}
	lines := o.lines()
	if len(lines) > maxOutlines {
		return nil, nil
	}
	return lines, nil
}

// outliner finds outlines on a grid of points that are looked at. Its cells have four of them as corners.
type outliner struct {
	p             *Problem
	arrays        bool // the fixed points or the coefficient are known at points alone
	columns, rows []int
	looks         []look // of the points, in rows
	edges         []bool // by the point at the top left of a cell: there may be an edge in the cell
	knots         []knot // the first one is unused
}

// look is how a point looks.
type look struct {
	known bool
	fixed bool
	a     float64 // the coefficient, without meaning where a point is fixed
}

func (l look) differs(o look) bool {
	if l.fixed || o.fixed {
		return l.fixed != o.fixed
	}
	return math.Max(l.a, o.a) >= leastContrast*math.Min(l.a, o.a) && l.a != o.a
}

// lookAtAll looks at all points, for a problem with arrays. There may be an edge in each cell.
func (o *outliner) lookAtAll(ctx context.Context) error {
	rows := o.p.take(0)
	defer o.p.give(rows)
	for j, iy := range o.rows {
		if err := ended(ctx); err != nil {
			return err
		}
		iy, _ = o.p.mesh.Canonical(iy)
		m, err := rows.material(iy)
		if err != nil {
			return err
		}
		for i, ix := range o.columns {
			n := j*len(o.columns) + i
			o.looks[n], o.edges[n] = look{true, m.fixed != nil && m.fixed[ix], m.a[ix]}, true
		}
	}
	return nil
}

// find marks the cells of a part of the grid in which there may be an edge of an area.
func (o *outliner) find(left, right, top, bottom int) {
	b := box{float64(o.columns[left]), float64(o.columns[right]), float64(o.rows[top]), float64(o.rows[bottom])}
	a := o.p.coefficient.node.limit(b)
	x, y := (left+right)/2, (top+bottom)/2
	switch {
	case o.p.fixed.node.limit(b).decided() && !(a.jumps && (a.hi >= leastContrast*a.lo || a.nan)):
	case right-left == 1 && bottom-top == 1:
		o.edges[top*len(o.columns)+left] = true
	case right-left >= bottom-top:
		o.find(left, x, top, bottom)
		o.find(x, right, top, bottom)
	default:
		o.find(left, right, top, y)
		o.find(left, right, y, bottom)
	}
}

// findSeams marks the cells at periodic sides. Their first points are copies from the other end of the plane.
func (o *outliner) findSeams() {
	columns := len(o.columns)
	for n := range o.edges {
		if n%columns == 0 && o.p.mesh.PeriodicColumns() || n < columns && o.p.mesh.PeriodicRows() {
			o.edges[n] = true
		}
	}
}

// look returns how a point of the grid looks.
func (o *outliner) look(i, j int) look {
	l := &o.looks[j*len(o.columns)+i]
	if !l.known {
		iy, ix := o.p.canonical(o.rows[j], o.columns[i])
		*l = o.at(float64(ix), float64(iy))
	}
	return *l
}

// at returns how a place looks.
func (o *outliner) at(x, y float64) look {
	return look{true, o.p.fixed.node.spot(&spot{x: x, y: y}) != 0, o.p.coefficient.node.spot(&spot{x: x, y: y})}
}

// knot is a place where lines meet, or where a line crosses one between two neighbours of the grid.
type knot struct {
	x, y   float64
	to     [4]int32 // the other ends of its lines
	degree int      // the number of these
	step   bool     // it lies halfway between two points, as no more is known
}

// knot adds a knot.
func (o *outliner) knot(k knot) int32 {
	o.knots = append(o.knots, k)
	return int32(len(o.knots) - 1)
}

// join draws a line from one knot to another.
func (o *outliner) join(a, b int32) {
	for _, end := range [2][2]int32{{a, b}, {b, a}} {
		k := &o.knots[end[0]]
		k.to[k.degree] = end[1]
		k.degree++
	}
}

// bisections is how often the line between two neighbours is halved to find an edge. It lies on a multiple of twice
// the last half then, so that an edge on such a place is exact.
const bisections = 10

// crossing returns the knot on the line from a point of the grid to the next one in the row, or else in the column; 0
// if they look alike. On the rim of the mesh a line goes on for half a spacing, to the rim of the picture.
func (o *outliner) crossing(i, j int, x bool) int32 {
	next, one := [2]int{i, j + 1}, o.look(i, j)
	if x {
		next = [2]int{i + 1, j}
	}
	other := o.look(next[0], next[1])
	if !one.differs(other) {
		return o.thin(i, j, x, one.fixed)
	}
	part, values := o.p.fixed.part, one.fixed == other.fixed
	if values {
		part = o.p.coefficient
	}
	// first reports whether the place looks like the first of the two points.
	first := func(s spot) bool {
		v := part.node.spot(&s)
		if !values {
			return (v != 0) == one.fixed
		}
		return (float64(v*v) > float64(one.a*other.a)) == (one.a > other.a)
	}
	place := func(f float64) spot {
		x, y := float64(o.columns[i]), float64(o.rows[j])
		return spot{x: x + float64((float64(o.columns[next[0]])-x)*f), y: y + float64((float64(o.rows[next[1]])-y)*f)}
	}
	at, width := 0.5, 0.25
	if part.covers() {
		for range bisections {
			if first(place(at)) {
				at += width
			} else {
				at -= width
			}
			width /= 2
		}
		at = math.RoundToEven(at/(8*width)) * (8 * width)
	}
	s := place(at)
	k := o.knot(knot{x: s.x, y: s.y, step: !part.covers()})
	rim := s
	if x {
		rim.y = beyond(j, o.rows)
	} else {
		rim.x = beyond(i, o.columns)
	}
	if rim != s {
		o.join(k, o.knot(knot{x: rim.x, y: rim.y}))
	}
	return k
}

// thin returns the knot in the middle of a fixed area between two free points.
func (o *outliner) thin(i, j int, x, fixed bool) int32 {
	l := line{n: o.p.fixed.node, along: x, other: float64(o.columns[i]), widthless: o.p.widthless}
	from, to := j, j+1
	places := o.rows
	if x {
		l.other, from, to, places = float64(o.rows[j]), i, i+1, o.columns
	}
	if fixed || o.arrays || !l.jumps(float64(places[from]), float64(places[to])) {
		return 0
	}
	first, last, ok := l.extent(float64(places[from]), float64(places[to]))
	if !ok {
		return 0
	}
	s := l.place(math.RoundToEven(halfway(first, last)*4096) / 4096) // as crossing rounds
	return o.knot(knot{x: s.x, y: s.y})
}

// beyond returns the place of number i of a list, or half a spacing beyond an end.
func beyond(i int, list []int) float64 {
	switch at := float64(list[i]); i {
	case 0:
		return at - 0.5
	case len(list) - 1:
		return at + 0.5
	default:
		return at
	}
}

// cells draws the lines in the cells below row j. above has the knots on their upper sides, where there was a cell
// with an edge above, or -1 for a side without one, and gets those on the lower sides.
func (o *outliner) cells(j int, above []int32) {
	left := int32(0)
	side := func(known int32, i, j int, x bool) int32 {
		if known == 0 {
			known = o.crossing(i, j, x)
		}
		return max(known, 0)
	}
	told := func(k int32) int32 { // what the next cell takes
		if k == 0 {
			return -1
		}
		return k
	}
	for i := range len(o.columns) - 1 {
		if !o.edges[j*len(o.columns)+i] {
			above[i], left = 0, 0
			continue
		}
		top, bottom := side(above[i], i, j, true), o.crossing(i, j+1, true)
		west, east := side(left, i, j, false), o.crossing(i+1, j, false)
		above[i], left = told(bottom), told(east)
		o.cell(i, j, top, bottom, west, east)
	}
}

// cell draws the lines in a cell between the knots on its sides.
func (o *outliner) cell(i, j int, top, bottom, west, east int32) {
	halfway := func(a, b int32, valueA, valueB float64) float64 {
		switch {
		case a == 0:
			return valueB
		case b == 0:
			return valueA
		}
		return (valueA + valueB) / 2
	}
	x := halfway(top, bottom, o.knots[top].x, o.knots[bottom].x)
	y := halfway(west, east, o.knots[west].y, o.knots[east].y)
	ends := slices.DeleteFunc([]int32{top, bottom, west, east}, func(k int32) bool { return k == 0 })
	if len(ends) < 2 {
		return
	}
	if len(ends) == 2 && ((top == 0) == (bottom == 0) || !o.corner(i, j, x, y, ends, top != 0, west != 0)) {
		o.join(ends[0], ends[1])
		return
	}
	middle := o.knot(knot{x: x, y: y})
	for _, k := range ends {
		o.join(middle, k)
	}
}

// nearby is the part of a cell by which the four places around a corner lie beside it.
const nearby = 1.0 / 128

// corner reports whether edges along x and y meet at a place of a cell whose lines cross its upper side, or else the
// lower one, and the left side, or else the right one. Steps do.
func (o *outliner) corner(i, j int, x, y float64, ends []int32, top, left bool) bool {
	if o.arrays {
		return !slices.ContainsFunc(ends, func(k int32) bool { return !o.knots[k].step })
	}
	// The lines cut one corner of the cell off, which lies across from another one.
	cut, across := [2]int{i + 1, j + 1}, [2]int{i, j}
	if left {
		cut[0], across[0] = i, i+1
	}
	if top {
		cut[1], across[1] = j, j+1
	}
	dx := float64(nearby * float64(o.columns[cut[0]]-o.columns[across[0]]))
	dy := float64(nearby * float64(o.rows[cut[1]]-o.rows[across[1]]))
	in, out := o.look(cut[0], cut[1]), o.look(across[0], across[1])
	return in.differs(out) && !in.differs(o.at(x+dx, y+dy)) && !out.differs(o.at(x-dx, y+dy)) &&
		!out.differs(o.at(x+dx, y-dy)) && !out.differs(o.at(x-dx, y-dy))
}

// lines returns the lines between knots. Chains of them that are almost straight are one line.
func (o *outliner) lines() (lines [][4]float64) {
	for _, ends := range [2]bool{true, false} { // of chains, and then what is closed
		for at := range o.knots {
			for k := range o.knots[at].degree {
				if o.knots[at].to[k] != 0 && (o.knots[at].degree != 2) == ends {
					lines = o.straighten(o.chain(int32(at), k), lines)
				}
			}
		}
	}
	return lines
}

// chain takes the knots of a chain out that begins with a line of a knot.
func (o *outliner) chain(at int32, line int) []int32 {
	list := []int32{at}
	for line >= 0 {
		next := o.knots[at].to[line]
		back := slices.Index(o.knots[next].to[:], at)
		o.knots[at].to[line], o.knots[next].to[back] = 0, 0
		list, at, line = append(list, next), next, -1
		if o.knots[at].degree == 2 {
			line = slices.IndexFunc(o.knots[at].to[:], func(k int32) bool { return k != 0 })
		}
	}
	return list
}

// straighten adds the lines along a chain to a list.
func (o *outliner) straighten(chain []int32, lines [][4]float64) [][4]float64 {
	if last := len(chain) - 1; chain[0] == chain[last] { // it begins where its first line ends
		n := o.reach(chain)
		chain = slices.Concat(chain[n:], chain[1:n+1])
	}
	for len(chain) > 1 {
		n := o.reach(chain)
		a, b := o.knots[chain[0]], o.knots[chain[n]]
		if b.y < a.y || b.y == a.y && b.x < a.x {
			a, b = b, a
		}
		lines, chain = append(lines, [4]float64{a.x, a.y, b.x, b.y}), chain[n:]
	}
	return lines
}

// slack is how far a line may pass by the knots of its chain, in cells.
const slack = 1.0 / 64

// reach returns the number of the last knot of a chain that a line from the first one can end at.
func (o *outliner) reach(chain []int32) int {
	cell := [2]float64{float64(o.p.mesh.NX-1) / float64(len(o.columns)-1),
		float64(o.p.mesh.NY-1) / float64(len(o.rows)-1)}
	cross := func(a, b [2]float64) float64 { return float64(a[0]*b[1]) - float64(a[1]*b[0]) }
	var right, left [2]float64 // between these directions a line passes by all knots so far
	narrow := false
	for i, k := range chain[1:] {
		d := [2]float64{(o.knots[k].x - o.knots[chain[0]].x) / cell[0], (o.knots[k].y - o.knots[chain[0]].y) / cell[1]}
		if narrow && (cross(right, d) < 0 || cross(d, left) < 0) {
			return i
		}
		far := math.Sqrt(float64(d[0]*d[0]) + float64(d[1]*d[1]))
		if far <= slack {
			continue
		}
		aside := [2]float64{-float64(d[1]*slack) / far, float64(d[0]*slack) / far}
		r, l := [2]float64{d[0] - aside[0], d[1] - aside[1]}, [2]float64{d[0] + aside[0], d[1] + aside[1]}
		if !narrow || cross(right, r) > 0 {
			right = r
		}
		if !narrow || cross(l, left) > 0 {
			left = l
		}
		narrow = true
	}
	return len(chain) - 1
}

// sides returns at most most of n numbers, evenly spread, with both ends.
func sides(n, most int) []int {
	list := make([]int, min(n, most))
	for i := range list {
		list[i] = i * (n - 1) / (len(list) - 1)
	}
	return list
}
