// Package results works out, from the field of a finished run, what people want to know of a solution: its energy, its
// extremes and mean, and the flux through each wall and each connected region of fixed points. docs/problems.md has the
// formulas. Each rank tallies its rows, and one rank merges the tallies. All sums over rows are exact, so the results
// are the same, bit by bit, for any number of ranks.
package results

import (
	"fmt"
	"math"
	"runtime"

	"jacobi/internal/parallel"
	"jacobi/solver"
)

// Problem is the problem whose solution is tallied. A problem.Problem is one.
type Problem interface {
	Mesh() solver.Mesh
	Spacings() (hx, hy float64)
	Screening() float64
	Operator() solver.Operator
	Row(iy int, dst []byte) error
	// Derivative returns the outward derivative of a Neumann wall at one of its points. Walls are numbered as in
	// solver.Walls.
	Derivative(wall, iy, ix int) (float64, error)
}

// The walls in the order of solver.Walls.
const (
	left = iota
	right
	top
	bottom
	walls
)

// Tally is the part of the results that one rank works out. It gets the rows of the rank's stripe from top to bottom,
// and then the first row of the next rank.
type Tally struct {
	problem  Problem
	mesh     solver.Mesh
	stripe   solver.Stripe
	hx, hy   float64
	lo, hi   int // columns that a sweep updates
	fixed    solver.FixedRows
	part     Part
	labels   labels
	now, old line        // the newest row and the one above it
	batch    [][]float64 // buffers for rows
	newest   int         // place of the newest row in batch
	first    []byte
}

// line is a row of the field with the regions of its points.
type line struct {
	iy     int
	values []float64
	label  []int // by column; -1 where the point is free or of a wall; nil without fixed points
}

// New returns a Tally for the rows of a stripe.
func New(p Problem, stripe solver.Stripe) *Tally {
	t := &Tally{problem: p, mesh: p.Mesh(), stripe: stripe, fixed: p.Operator().Fixed,
		part: Part{Min: extreme{Value: math.Inf(1)}, Max: extreme{Value: math.Inf(-1)}}}
	t.hx, t.hy = p.Spacings()
	t.lo, t.hi = t.mesh.InteriorColumns()
	t.now.iy, t.old.iy = -2, -2 // far from any row
	return t
}

// First returns the first row of the stripe, which the rank above needs for End; nil before it has come.
func (t *Tally) First() []byte { return t.first }

// AddRows adds dense rows of the mesh, which begin at row lo. It ignores rows outside the stripe.
func (t *Tally) AddRows(lo int, rows []byte) error {
	size := t.mesh.RowBytes()
	first, end := max(lo, t.stripe.Lo), min(lo+len(rows)/size, t.stripe.Hi)
	if first >= end {
		return nil
	}
	rows = rows[(first-lo)*size : (end-lo)*size]
	if first == t.stripe.Lo {
		t.first = append([]byte(nil), rows[:size]...)
		if err := t.begin(); err != nil {
			return err
		}
	}
	for n := t.batchRows() * size; len(rows) > 0; rows = rows[min(n, len(rows)):] {
		if err := t.add(end-len(rows)/size, rows[:min(n, len(rows))], true); err != nil {
			return err
		}
	}
	return nil
}

// batchRows returns how many rows are decoded at a time: enough for all cores, in about a mebibyte.
func (t *Tally) batchRows() int { return max(runtime.GOMAXPROCS(0), 1<<20/(8*t.mesh.NX)) }

// begin adds the row of a fixed top wall.
func (t *Tally) begin() error {
	if t.stripe.Lo != 1 || t.mesh.Walls.Top != solver.Fixed {
		return nil
	}
	row := make([]byte, t.mesh.RowBytes())
	if err := t.problem.Row(0, row); err != nil {
		return err
	}
	return t.add(0, row, true)
}

// End returns the rank's part of the results. next is the first row of the rank below, in which the mesh goes on; nil
// if the stripe is the last one and top and bottom are not periodic.
func (t *Tally) End(next []byte) (Part, error) {
	if t.now.iy != t.stripe.Hi-1 {
		return Part{}, fmt.Errorf("results: rows %v end with row %d", t.stripe, t.now.iy)
	}
	own := false
	if next == nil && t.stripe.Hi == t.mesh.NY-1 {
		next, own = make([]byte, t.mesh.RowBytes()), true
		if err := t.problem.Row(t.stripe.Hi, next); err != nil {
			return Part{}, err
		}
	}
	if next != nil {
		if err := t.add(t.stripe.Hi, next, own); err != nil {
			return Part{}, err
		}
		if !own {
			t.part.Bottom = t.ends(t.now)
		}
	}
	if t.part.Dropped {
		t.part.Top, t.part.Bottom = nil, nil
		return t.part, nil
	}
	list, place := t.labels.numbered()
	t.part.Regions = list
	for _, ends := range [][]int{t.part.Top, t.part.Bottom} {
		for i, label := range ends {
			ends[i] = place(label)
		}
	}
	return t.part, nil
}

// add adds the next rows, which begin at row iy. own is false for the row of another rank.
func (t *Tally) add(iy int, rows []byte, own bool) error {
	size := t.mesh.RowBytes()
	batch := t.buffers(len(rows) / size)
	sums := make([]rowSums, len(batch))
	err := parallel.Each(len(batch), func(i int) error {
		t.mesh.DType.Decode(batch[i], rows[i*size:][:size])
		return nil
	})
	if err != nil {
		return err
	}
	err = parallel.Each(len(batch), func(i int) error {
		above := t.now.values
		if i > 0 {
			above = batch[i-1]
		} else if t.now.iy != iy-1 {
			above = nil
		}
		sums[i] = t.sumsOf(above, batch[i], iy+i)
		return nil
	})
	if err != nil {
		return err
	}
	for i, values := range batch {
		t.old, t.now = t.now, line{iy: iy + i, values: values, label: t.old.label}
		if err := t.addLine(sums[i], own); err != nil {
			return err
		}
	}
	return nil
}

// buffers returns n rows to fill, other ones than the newest row.
func (t *Tally) buffers(n int) [][]float64 {
	for len(t.batch) < n+1 {
		t.batch = append(t.batch, make([]float64, t.mesh.NX))
	}
	t.batch[0], t.batch[t.newest] = t.batch[t.newest], t.batch[0]
	t.newest = n
	return t.batch[1 : n+1]
}

// addLine adds the newest row, of which these are the sums.
func (t *Tally) addLine(s rowSums, own bool) error {
	iy := t.now.iy
	if err := t.mark(own); err != nil {
		return err
	}
	if iy == t.stripe.Lo {
		t.part.Top = t.ends(t.now)
	}
	if own {
		t.part.Steps[0].Add(s.along)
		t.part.Sum.Add(s.sum)
		t.part.Squares.Add(s.squares)
		t.part.Min.take(s.min, -1)
		t.part.Max.take(s.max, 1)
	}
	if t.old.iy == iy-1 {
		t.part.Steps[1].Add(s.across)
		t.fluxBetween()
	}
	if !own || iy < t.stripe.Lo || iy >= t.stripe.Hi {
		return nil
	}
	t.fluxInRow()
	return t.derivatives()
}

// half returns the weight of row iy in an integral over the mesh, as that of a column: half at the ends.
func (t *Tally) half(i, n int) float64 {
	if i == 0 || i == n-1 {
		return 0.5
	}
	return 1
}

// rowSums are the sums over one row, in the order of its columns.
type rowSums struct {
	along, across float64 // squares of the steps in the row, and from the row above
	sum, squares  float64 // of the values
	min, max      extreme
}

// sumsOf returns the sums of row iy. above is nil if the row above does not count.
func (t *Tally) sumsOf(above, u []float64, iy int) (s rowSums) {
	from, to := 0, t.mesh.NX
	if t.mesh.PeriodicColumns() {
		from, to = 1, t.mesh.NX-1
	}
	least, most := from, from
	for ix := from; ix < to; ix++ {
		v := u[ix]
		if v < u[least] {
			least = ix
		}
		if v > u[most] {
			most = ix
		}
		weight := 1.0
		if from == 0 && (ix == 0 || ix == to-1) {
			weight = 0.5
		}
		s.sum += float64(weight * v)
		s.squares += float64(weight * float64(v*v))
		if ix+1 < t.mesh.NX {
			step := u[ix+1] - v
			s.along += float64(step * step)
		}
		if above != nil {
			step := v - above[ix]
			s.across += float64(weight * float64(step*step))
		}
	}
	if !t.mesh.PeriodicRows() {
		weight := t.half(iy, t.mesh.NY)
		s.along, s.sum, s.squares = float64(weight*s.along), float64(weight*s.sum), float64(weight*s.squares)
	}
	s.min, s.max = extreme{u[least], least, iy}, extreme{u[most], most, iy}
	return s
}
