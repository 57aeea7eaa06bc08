package problem

import "math"

// The plane of an expression is measured in points of the mesh: the point at column ix and row iy lies at x = ix and
// y = iy, and what lies half a spacing to the right at ix + 0.5.

// spot is a place of the plane at which an expression is evaluated.
type spot struct {
	x, y float64
	// branches is a hash of the branches that were taken. Two places with another one lie on either side of a jump.
	branches uint64
}

// decide adds the number of a branch to those that were taken, and returns it.
func (s *spot) decide(branch float64) float64 {
	// A first 0 counts, too.
	s.branches = (s.branches + 1 ^ math.Float64bits(float64(branch)+0)) * 0x9e3779b97f4a7c15
	s.branches ^= s.branches >> 29
	return branch
}

// box is a rectangle of the plane with its edges.
type box struct{ left, right, top, bottom float64 }

// axis is a direction of the plane. Beyond its ends a periodic one goes on; its first point is a copy of the last.
type axis struct {
	intervals float64
	periodic  bool
}

// at returns where in the mesh v lies.
func (a axis) at(v float64) float64 {
	switch {
	case a.periodic && v > a.intervals:
		return v - a.intervals
	case a.periodic && v <= 0:
		return v + a.intervals
	}
	return v
}

// limit returns the bounds of the places from lo to hi, in the given unit.
func (a axis) limit(lo, hi, unit float64) bounds {
	if first, last := a.at(lo), a.at(hi); (first == lo) != (last == hi) || first > last { // it goes on at the other end
		return bounds{lo: 0, hi: a.intervals / unit}
	}
	return bounds{lo: a.at(lo) / unit, hi: a.at(hi) / unit}
}

// covers reports whether the values of the expression are known at all places, and not only at points.
func (n node) covers() bool { return n.spot != nil && !n.indexed }

// piece is a part of a line in which the expression takes the same branches.
type piece struct {
	from, to float64
	branches uint64
}

func (p piece) length() float64 { return p.to - p.from }

func (p piece) middle() float64 { return halfway(p.from, p.to) }

// halfway returns the middle of two numbers, rounded alike on all machines.
func halfway(lo, hi float64) float64 { return lo + float64((hi-lo)/2) }

const (
	isolations = 5     // halvings of a line whose parts without jumps are left out
	further    = 12    // more of a part that may jump though its ends are alike: a thin layer may lie in it
	mostThin   = 128   // such parts of a line that are halved
	exact      = 32    // halvings of the rest, after which the place of a jump is known
	rough      = 20    // the same in lanes that differ from each other
	crumb      = 1e-11 // of a spacing: shorter pieces are none
	mostJumps  = 16    // that are told apart within a part
)

// line is a line of the plane across which, or along which, an expression is followed.
type line struct {
	n     node
	along bool    // it runs along x
	other float64 // its y, or else its x
	rough bool    // places of jumps need not be exact
	// widthless says that the condition may hold at places alone, of which rounding may hide that it does.
	widthless bool
	list      []piece
	here      spot // of look
	thin      int  // parts that are alike at their ends and have been halved
}

// pieces returns the parts of the line from one place to another between which the expression jumps. They are of use
// until the next call.
func (l *line) pieces(from, to float64) []piece {
	l.list, l.thin = l.list[:0], 0
	l.split(from, to, isolations)
	return l.list
}

// value returns the value of the expression at a place of the line.
func (l *line) value(at float64) float64 {
	v, _ := l.look(at)
	return v
}

// of returns the value of the expression in a piece: in its middle, or near its beginning if the middle happens to lie
// in a part that is too thin to be told apart.
func (l *line) of(p piece) float64 {
	if v, branches := l.look(p.middle()); branches == p.branches {
		return v
	}
	return l.value(p.from + min(near, p.length()/4))
}

func (l *line) look(at float64) (value float64, branches uint64) {
	s := &l.here
	if *s = (spot{x: at, y: l.other}); !l.along {
		s.x, s.y = l.other, at
	}
	value = l.n.spot(s)
	if l.n.isBool {
		return value, uint64(value)
	}
	return value, s.branches
}

// jumps reports whether the expression may jump between two places of the line.
func (l *line) jumps(from, to float64) bool {
	b := box{from, to, l.other, l.other}
	if !l.along {
		b = box{l.other, l.other, from, to}
	}
	return l.n.jumps(b)
}

// jumpsAt is jumps of the line at another place.
func (l line) jumpsAt(other, from, to float64) bool {
	l.other = other
	return l.jumps(from, to)
}

// jumps reports whether the expression may jump in a box.
func (n node) jumps(b box) bool {
	return n.mayJump(n.limit(b))
}

// split adds the pieces of a part of the line. Most edges lie on lines between points or halfway, and so at its ends.
func (l *line) split(from, to float64, left int) {
	switch middle := halfway(from, to); {
	case !l.jumps(from+crumb, to-crumb):
		_, branches := l.look(middle)
		l.add(from, to, branches)
	case left > 0:
		l.split(from, middle, left-1)
		l.split(middle, to, left-1)
	case left > -further && l.thin < mostThin && l.alike(from+crumb, to-crumb):
		l.thin++
		l.split(from, middle, left-1)
		l.split(middle, to, left-1)
	default:
		l.bisect(from, to)
	}
}

// alike reports whether the same branches are taken at two places.
func (l *line) alike(at, other float64) bool {
	_, one := l.look(at)
	_, two := l.look(other)
	return one == two
}

// bisect adds the pieces of a short part of the line.
func (l *line) bisect(from, to float64) {
	_, end := l.look(to - crumb)
	for range mostJumps {
		_, begin := l.look(from + crumb)
		if begin == end {
			break
		}
		lo, hi, halvings := from, to, exact
		if l.rough {
			halvings = rough
		}
		for range halvings {
			middle := halfway(lo, hi)
			if _, at := l.look(middle); at == begin {
				lo = middle
			} else {
				hi = middle
			}
		}
		l.add(from, hi, begin)
		from = hi
	}
	l.add(from, to, end)
}

// add adds a piece, or makes the last one longer.
func (l *line) add(from, to float64, branches uint64) {
	n := len(l.list)
	switch {
	case n > 0 && (branches == l.list[n-1].branches || to-from < crumb):
		l.list[n-1].to = to
		return
	case n == 1 && l.list[0].length() < crumb:
		from, n = l.list[0].from, 0
	}
	l.list = append(l.list[:n], piece{from, to, branches})
}

// near is how far from a jump, in spacings, the branches beside it are compared.
const near = 1e-9

// has reports whether the line at another place has these pieces, too, as far as their ends show.
func (l *line) has(pieces []piece, other float64) bool {
	before := l.other
	l.other = other
	defer func() { l.other = before }()
	for _, p := range pieces {
		inside := min(near, p.length()/4)
		for _, at := range [2]float64{p.from + inside, p.to - inside} {
			if _, branches := l.look(at); branches != p.branches {
				return false
			}
		}
	}
	return true
}
