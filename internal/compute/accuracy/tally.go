package accuracy

import (
	"math"
	"sync"

	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// Problem is the problem that a run has solved. A problem.Problem is one.
type Problem interface {
	Mesh() solver.Mesh
	Operator() solver.Operator
}

// Tally collects what one rank contributes, from the rows that results.Rows gives it.
type Tally struct {
	mesh    solver.Mesh
	op      solver.Operator
	stripe  solver.Stripe
	shape   shape
	part    Part
	blocks  bool      // are wanted
	sources sync.Pool // of *sourceRow
}

// Part is what a rank has collected.
type Part struct {
	Largest float64 `json:"largest"` // absolute value
	// Blocks, by rows; none after cycles.
	Defects []results.Sum `json:"defects,omitempty"` // of the points, times their parts in the mesh
	Grounds []Couplings   `json:"grounds,omitempty"`
	Free    []int64       `json:"free,omitempty"` // points
}

// Couplings count the couplings of free points with fixed ones inside the mesh, along x and along y. Those along a
// Neumann wall count 1, others 2.
type Couplings [2]int64

func (c Couplings) plus(d Couplings) Couplings { return Couplings{c[0] + d[0], c[1] + d[1]} }

// line is a row of the mesh; the zero line is none.
type line struct {
	iy    int
	u     []float64
	fixed []bool // nil for none
	swept bool   // the row is none of a fixed wall
}

// New returns a Tally for the rows of a stripe. Without blocks it collects the largest value alone.
func New(p Problem, stripe solver.Stripe, blocks bool) *Tally {
	t := &Tally{mesh: p.Mesh(), op: p.Operator().General(), stripe: stripe, blocks: blocks}
	t.op.Values, t.op.Fixed = p.Operator().Values, p.Operator().Fixed
	t.shape = newShape(t.mesh)
	t.sources.New = func() any {
		return &sourceRow{values: make([]float64, t.mesh.NX), bytes: make([]byte, t.mesh.RowBytes())}
	}
	if blocks {
		t.part.Defects = make([]results.Sum, t.shape.blocks())
		t.part.Grounds, t.part.Free = make([]Couplings, t.shape.blocks()), make([]int64, t.shape.blocks())
	}
	return t
}

// Part returns what the rank has collected, after the last row.
func (t *Tally) Part() Part { return t.part }

// Look implements results.RowUser.
func (t *Tally) Look(b results.Batch) (steps results.Steps, err error) {
	own := b.Own && t.stripe.Lo <= b.IY && b.IY < t.stripe.Hi                  // not a wall
	lines, terms := make([]line, len(b.Rows)+1), make([]rowTerms, len(b.Rows)) // the row above comes first
	for i := range lines {
		u := b.Above[1]
		if i > 0 {
			u = b.Rows[i-1]
		}
		if !t.blocks || u == nil {
			continue
		}
		if lines[i], err = t.lineOf(b.IY+i-1, u); err != nil {
			return steps, err
		}
	}
	for i := range terms {
		if terms[i].largest = largestOf(b.Rows[i]); !t.blocks {
			continue
		}
		if err := t.fill(&terms[i], lines[i], lines[i+1], own); err != nil {
			return steps, err
		}
	}
	steps.Add = func() error {
		for i := range terms {
			t.addTerms(b.IY+i, terms[i])
		}
		return nil
	}
	return steps, nil
}

// largestOf returns the largest absolute value of a row; NaN if one is NaN.
func largestOf(row []float64) (largest float64) {
	for _, v := range row {
		if v = math.Abs(v); v > largest || math.IsNaN(v) {
			largest = v
		}
	}
	return largest
}

// lineOf returns row iy, whose values are u.
func (t *Tally) lineOf(iy int, u []float64) (l line, err error) {
	l = line{iy: iy, u: u}
	_, l.swept = t.shape.row(iy)
	if t.op.Fixed != nil {
		l.fixed = make([]bool, t.mesh.NX)
		canonical, _ := t.mesh.Canonical(iy)
		err = t.op.Fixed.FixedRow(canonical, l.fixed)
	}
	return l, err
}

// addTerms adds the terms of row iy.
func (t *Tally) addTerms(iy int, s rowTerms) {
	t.part.Largest = max(t.part.Largest, s.largest)
	for i := range s.own {
		at := t.shape.at(iy, i)
		t.part.Defects[at].Add(s.own[i])
		t.part.Grounds[at] = t.part.Grounds[at].plus(s.ground[i])
		t.part.Free[at] += s.free[i]
	}
	for i := range s.above {
		for _, side := range []struct {
			iy   int
			sum  float64
			held Couplings
		}{{iy - 1, s.above[i], s.held[0][i]}, {iy, s.below[i], s.held[1][i]}} {
			if row, ok := t.shape.row(side.iy); ok {
				at := row*len(t.shape.columns) + i
				t.part.Defects[at].Add(side.sum)
				t.part.Grounds[at] = t.part.Grounds[at].plus(side.held)
			}
		}
	}
}

// Merge returns the parts of all ranks together.
func Merge(parts []Part) (total Part) {
	for i, p := range parts {
		total.Largest = max(total.Largest, p.Largest)
		if len(p.Defects) == 0 {
			continue
		}
		if total.Defects == nil {
			total.Defects, total.Grounds, total.Free = p.Defects, p.Grounds, p.Free
			continue
		}
		for k := range p.Defects {
			total.Defects[k].Merge(&parts[i].Defects[k])
			total.Grounds[k] = total.Grounds[k].plus(p.Grounds[k])
			total.Free[k] += p.Free[k]
		}
	}
	return total
}
