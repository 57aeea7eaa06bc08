// Package results works out, from the field of a finished run, what people want to know of a solution: its energy, its
// extremes and mean, the flux through each wall and each connected region of fixed points, and the balance of what
// enters and leaves. docs/problems.md has the formulas. Each rank tallies its rows, and one rank merges the tallies.
// All sums over rows are exact, so the results are the same, bit by bit, for any number of ranks.
package results

import (
	"errors"
	"math"
	"sync"

	"jacobi/solver"
)

// Problem is the problem whose solution is tallied. A problem.Problem is one.
type Problem interface {
	Mesh() solver.Mesh
	Spacings() (hx, hy float64)
	Screening() float64
	Plain() bool // whether f and k2 are 0
	Row(iy int, dst []byte) error
	// WallFlux returns what flows in through a Neumann or Robin wall at one of its points, per length, if the field has
	// the value u there: a du/dn. Walls are numbered as in solver.Walls.
	WallFlux(wall, iy, ix int, u float64) (float64, error)
	// Materials returns the coefficients; nil if they are 1, and the screening is Screening.
	Materials() Materials
	// Given yields the points that are fixed, besides those of fixed walls; nil for none. Points outside the material
	// are not among them.
	Given() solver.FixedRows
	// RightHandSide writes f at the points of row iy from column col on to dst. It need not be finite at fixed walls.
	RightHandSide(iy, col int, dst []float64) error
	// RegionNames returns the names of the regions of fixed points by their numbers; nil if regions are connected fixed
	// points, without names.
	RegionNames() []string
	// RegionFloats reports whether the value of the region of a number was found, and not given.
	RegionFloats(number int) bool
	// RegionRow writes the numbers of the regions of the fixed points of row iy to dst, and -1 for other points, if
	// regions have names.
	RegionRow(iy int, fixed []bool, dst []int)
	// Axis returns the mean length of a full turn around an axis over the mesh, and whether there is one; 1 without.
	Axis() (mean float64, ok bool)
	// Turn multiplies values of row iy by the lengths of turns at their places, and TurnOfWall returns that at a point
	// of a wall: 1 without an axis.
	Turn(iy int, at Place, dst []float64)
	TurnOfWall(wall, iy, ix int) float64
	// Areas reports whether areas are fixed, and not points: at a point that is fixed, RightHandSide, Screenings and
	// WallFlux yield means over what is free in its square, or along the wall. These are its region's.
	Areas() bool
	// Joined reports whether there is only fixed area between two places: their columns and rows, not rounded.
	Joined(a, b [2]float64) bool
}

// Place says where values of a row lie: in the middles of the squares of points, or of faces.
type Place int

// The places of values.
const (
	Squares Place = iota
	East          // between a point and the next one
	North         // between a point and the one above
)

// Materials yields the coefficient a and the screening k2 of the points of a problem.
type Materials interface {
	// Faces writes the faces between the points of row iy and their neighbours to dst, whose East and North have room.
	Faces(iy int, dst *Faces) error
	// Screenings writes k2 at the points of row iy to dst.
	Screenings(iy int, dst []float64) error
	// OutsideRow sets dst[ix] for the points of row iy that lie outside the material.
	OutsideRow(iy int, dst []bool) error
}

// Faces are those between the points of a row and their neighbours in the next column and in the row above.
type Faces struct {
	East, North []float64 // the coefficients; 0 where there is none
	// LiftEast and LiftNorth are added to the steps of the field, to the next column and from the row above: the edge
	// of a fixed area may have another value than the point behind it. They are nil for none.
	LiftEast, LiftNorth []float64
	PinEast, PinNorth   []*Pin // areas between the points of faces without coefficient; nil for none
}

// The walls in the order of solver.Walls.
const (
	left = iota
	right
	top
	bottom
	walls
)

// Tally is the part of the results that one rank works out from the rows of its stripe and the first row of the next
// rank.
type Tally struct {
	problem   Problem
	mesh      solver.Mesh
	stripe    solver.Stripe
	hx, hy    float64
	lo, hi    int // columns that a sweep updates
	fixed     solver.FixedRows
	part      Part
	materials Materials
	labels    labels
	named     bool // a region is the points with its number, and its label is that number
	now, old  line // the newest row and the one above it
	spare     spare
	chunks    sync.Pool // of *chunk
	plain     bool      // f and k2 are 0
	areas     bool      // see Problem.Areas

	beside func(iy int, above [2][]float64, row []float64) error // see Beside
}

// line is a row of the field with the regions of its points.
type line struct {
	iy     int
	values []float64
	fixed  []bool            // by column; nil without fixed points, and for the row of a fixed wall
	label  []int             // by column; -1 where the point is free or of a wall; nil without fixed points
	runs   []run             // of fixed points, in regions without names
	pins   [2]map[int][2]int // labels of both sides of areas in faces to the next column, and to the row above
	pinned [2][]int          // the columns of these
	*ground
	room *room

	extents []extent // of regions with names in the row, by their numbers
}

// room is memory for the fixed points of a line and their labels.
type room struct {
	fixed []bool
	label []int
}

// pair is two rows that follow each other, and what passes to the walls and regions between them and in the lower one,
// added up over the pairs of a batch. The labels of both rows are known.
type pair struct {
	*Tally
	old, now line
	part     Part
	regions  map[int]*Sum // fluxes by labels
	segments [2]segment   // of the two rows, by their parity
}

// region returns the flux of the region of a label.
func (t *pair) region(label int) *Sum {
	if t.regions[label] == nil {
		if t.regions == nil {
			t.regions = map[int]*Sum{}
		}
		t.regions[label] = new(Sum)
	}
	return t.regions[label]
}

// spare is the memory of older rows, which is used again.
type spare struct {
	mu    sync.Mutex
	lines []line
}

// newLines returns lines with memory to be filled: that of lines which are not used any more, or new memory.
func (t *Tally) newLines(n int) []line {
	t.spare.mu.Lock()
	defer t.spare.mu.Unlock()
	lines := make([]line, n)
	for i := range lines {
		l := &lines[i]
		if last := len(t.spare.lines) - 1; last >= 0 {
			*l = t.spare.lines[last]
			t.spare.lines = t.spare.lines[:last]
			continue
		}
		if t.materials != nil {
			l.ground = newGround(t.mesh.NX)
		}
		if t.fixed != nil {
			l.room = &room{make([]bool, t.mesh.NX), make([]int, t.mesh.NX)}
		}
	}
	return lines
}

// New returns a Tally for the rows of a stripe.
func New(p Problem, stripe solver.Stripe) *Tally {
	t := &Tally{problem: p, mesh: p.Mesh(), stripe: stripe, fixed: p.Given(), materials: p.Materials(),
		plain: p.Plain(), areas: p.Areas(),
		part: Part{Min: extreme{Value: math.MaxFloat64}, Max: extreme{Value: -math.MaxFloat64}}}
	t.hx, t.hy = p.Spacings()
	t.lo, t.hi = t.mesh.InteriorColumns()
	t.now.iy, t.old.iy = -2, -2 // far from any row
	for range p.RegionNames() {
		t.named = true
		t.labels.add()
	}
	return t
}

// Beside has f called for each row that Look gets, beside the work on it: f finds what the problem keeps of the row.
// above are the two rows above it, the nearest one last; nil where these were not added. Several goroutines call f at
// once.
func (t *Tally) Beside(f func(iy int, above [2][]float64, row []float64) error) { t.beside = f }

// Part returns the rank's part of the results. It is called once, after the last row.
func (t *Tally) Part() Part {
	list, place := t.labels.numbered()
	t.part.Regions = list
	if t.part.Dropped {
		t.part.Top, t.part.Bottom = nil, nil
	}
	for _, ends := range [][]int{t.part.Top, t.part.Bottom} {
		for i, label := range ends {
			ends[i] = place(label)
		}
	}
	return t.part
}

// Look implements RowUser.
func (t *Tally) Look(b Batch) (steps Steps, err error) {
	sums, lines := make([]rowSums, len(b.Rows)), t.newLines(len(b.Rows))
	for i := range lines {
		l := &lines[i]
		l.iy, l.values = b.IY+i, b.Rows[i]
		if err := t.fill(l.ground, l.iy); err != nil {
			return steps, err
		}
		if t.fixed != nil && !t.wallRow(l.iy) {
			l.fixed, l.label = l.room.fixed, l.room.label
			if err := t.fixedRow(l.iy, l.fixed); err != nil {
				return steps, err
			}
			t.mark(l)
		}
		t.findPins(l)
		sums[i] = t.sumsOf(b.row(i-1), l.values, l.iy, l.ground)
		if b.Own {
			if sums[i].source, sums[i].absorbed, err = t.free(*l); err != nil {
				return steps, err
			}
		}
		if t.beside == nil {
			continue
		}
		if err := t.beside(l.iy, [2][]float64{b.row(i - 2), b.row(i - 1)}, l.values); err != nil {
			return steps, err
		}
	}
	w := &work{Tally: t, lines: lines, sums: sums, own: b.Own, pair: pair{Tally: t}}
	return Steps{w.add, w.rest, w.end}, nil
}

// work is a batch of rows that were looked at.
type work struct {
	*Tally
	lines []line // the row above them comes first, once they are added
	sums  []rowSums
	own   bool
	older line // the row above that
	pair  pair
}

// add adds the lines to those above: it finds the regions of their points.
func (w *work) add() error {
	w.older, w.lines = w.old, append([]line{w.now}, w.lines...)
	for i, s := range w.sums {
		w.old, w.now = w.now, w.lines[i+1]
		if err := w.addLine(s, w.own); err != nil {
			return err
		}
		w.lines[i+1] = w.now
	}
	w.writeLabels(&w.now) // the next batch reads them
	return nil
}

// rest works out what passes between the lines.
func (w *work) rest() error {
	n := len(w.sums)
	for i := 1; i < n; i++ {
		w.writeLabels(&w.lines[i])
	}
	for i := range n {
		w.pair.old, w.pair.now = w.lines[i], w.lines[i+1]
		if err := w.pair.add(w.own); err != nil {
			return err
		}
	}
	return nil
}

// end adds that, and gives up the lines but for the newest two.
func (w *work) end() {
	w.merge(&w.pair)
	w.spare.mu.Lock()
	defer w.spare.mu.Unlock()
	for _, l := range append([]line{w.older}, w.lines[:len(w.sums)-1]...) {
		if l.values != nil {
			w.spare.lines = append(w.spare.lines, line{ground: l.ground, room: l.room})
		}
	}
}

// merge adds what pairs of rows have found. Exact sums have no order.
func (t *Tally) merge(p *pair) {
	t.part.passed(&p.part)
	for label, flux := range p.regions {
		t.labels.of(label).Flux.Merge(flux)
	}
}

// addLine adds the newest row, whose sums are s: what needs the rows in their order.
func (t *Tally) addLine(s rowSums, own bool) error {
	iy := t.now.iy
	if err := t.join(own); err != nil {
		return err
	}
	t.markPins(own)
	if iy == t.stripe.Lo {
		t.part.Top = t.ends(t.now)
	}
	if own {
		t.part.Steps[0].Add(s.along)
		t.part.Sum.Add(s.sum)
		t.part.Squares.Add(s.squares)
		t.part.Outside.Add(s.outside)
		t.part.Source.Add(s.source)
		t.part.Absorbed.Add(s.absorbed)
		t.part.Min.take(s.min, -1)
		t.part.Max.take(s.max, 1)
	}
	if t.old.iy == iy-1 {
		t.part.Steps[1].Add(s.across)
		t.joinPins()
	}
	if !own {
		t.part.Bottom = t.ends(t.now)
	}
	return nil
}

// add works out what passes between the two rows, and in the lower one, which is the rank's own or not.
func (t *pair) add(own bool) error {
	iy := t.now.iy
	if t.old.iy == iy-1 {
		t.fluxBetween()
		if err := errors.Join(t.corners(), t.cells()); err != nil {
			return err
		}
	}
	if !own || iy < t.stripe.Lo || iy >= t.stripe.Hi {
		return nil
	}
	t.fluxInRow()
	return errors.Join(t.squares(), t.derivatives())
}

// rowPart returns the weight of row iy in an integral over the mesh, and columnPart that of a column: half at ends that
// are not periodic.
func (t *Tally) rowPart(iy int) float64 {
	if !t.mesh.PeriodicRows() && (iy == 0 || iy == t.mesh.NY-1) {
		return 0.5
	}
	return 1
}

func (t *Tally) columnPart(ix int) float64 {
	if !t.mesh.PeriodicColumns() && (ix == 0 || ix == t.mesh.NX-1) {
		return 0.5
	}
	return 1
}
