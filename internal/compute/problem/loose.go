package problem

import (
	"context"
	"fmt"
	"math"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// Where nothing determines the constant of a solution, the equations have one only if what flows in adds up to 0. So
// the mean of the source and of what walls let in, over the material, is taken off the source, and the solution is the
// one whose mean is 0.

// TakenOff is what is taken off the source of a loose problem.
type TakenOff struct {
	Amount float64 `json:"amount"` // at each point of the material, in the unit of problem.source
	// Relative is the sum of what flows in and, as negative numbers, out, over the sum of the absolute values.
	Relative float64 `json:"relative"`
}

// Surplus is what is taken off, and by how much that may change an update at most.
type Surplus struct {
	TakenOff
	Update float64 `json:"update"`
}

// balanced is the most of TakenOff.Relative that rounding explains.
const balanced = 1e-12

// checkLoose refuses a loose problem for a method that does not solve it.
func (p *Problem) checkLoose() error {
	if s := p.config.Solver; p.loose && !s.Entry().Levels {
		return fmt.Errorf("solver.method %q: no side has values, so any constant can be added to a solution, and "+
			"sweeps keep what alternates from point to point; take multigrid, which finds the field with the mean 0, "+
			"or give a value on a side or points in %s", s.Method, p.fixed.key)
	}
	return nil
}

// undriven refuses a loose problem whose solution is 0.
func (p *Problem) undriven() error {
	return fmt.Errorf("problem.left %q, right %q, top %q, bottom %q, source %q: no side has values and nothing flows "+
		"in, so the field would be 0 everywhere; give a source, a flux or a value on a side", p.sides[west].text,
		p.sides[east].text, p.sides[north].text, p.sides[south].text, p.source.text)
}

// Totals are exact sums over the free points of rows of a loose problem, each counted as often as quarters of a cell
// belong to it, of the right-hand sides of their equations: the source and what walls let in.
type Totals struct {
	Net     results.Sum `json:"net"`
	Gross   results.Sum `json:"gross"`   // of absolute values
	Inverse float64     `json:"inverse"` // the largest of 1/D, D the diagonal of an equation
}

func (t *Totals) add(o *Totals) {
	t.Net.Merge(&o.Net)
	t.Gross.Merge(&o.Gross)
	t.Inverse = max(t.Inverse, o.Inverse)
}

// pair is a sum to twice the digits of float64, in which rows are added: the same on every processor, and exact for a
// number that is added again and again.
type pair struct{ high, low float64 }

func (s *pair) add(v float64) {
	sum := s.high + v
	back := sum - s.high
	s.low += (s.high - (sum - back)) + (v - back)
	s.high = sum
}

func (s pair) to(sum *results.Sum) {
	sum.Add(s.high)
	sum.Add(s.low)
}

// totals returns those of rows [lo, hi); nil for a problem that is not loose.
func (p *Problem) totals(ctx context.Context, lo, hi int) (*Totals, error) {
	if !p.loose {
		return nil, nil
	}
	in := p.mesh.Interior()
	lo, hi = max(lo, in.Lo), min(hi, in.Hi)
	type row struct {
		net, gross pair
		inverse    float64
	}
	rows := make([]row, max(0, hi-lo))
	err := parallel.Each(len(rows), func(i int) (err error) {
		if err := ended(ctx); err != nil {
			return err
		}
		r := &rows[i]
		r.inverse, err = p.eachInflow(lo+i, func(v float64) {
			r.net.add(v)
			r.gross.add(math.Abs(v))
		})
		return err
	})
	t := new(Totals)
	for _, r := range rows {
		r.net.to(&t.Net)
		r.gross.to(&t.Gross)
		t.Inverse = max(t.Inverse, r.inverse)
	}
	return t, err
}

// eachInflow calls f with the terms of Totals of row iy, and returns its Inverse.
func (p *Problem) eachInflow(iy int, f func(float64)) (inverse float64, err error) {
	lo, hi := p.mesh.InteriorColumns()
	source := make([]float64, hi-lo)
	r := p.take(iy)
	defer p.give(r)
	if err := r.rightHandSide(r.span.at(iy, lo), source); err != nil {
		return 0, err
	}
	var st *stencil
	var here *material
	if p.weighted {
		if st, err = r.stencil(iy); err == nil {
			here, err = r.material(iy)
		}
		if err != nil {
			return 0, err
		}
	}
	a, diagonal := p.a, p.Diagonal()
	for ix := lo; ix < hi; ix++ {
		if st != nil {
			if !st.free[ix] || st.diagonal[ix] == 0 {
				continue
			}
			a, diagonal = here.a[ix], st.diagonal[ix]
		}
		inverse = max(inverse, p.turn.radius(p.middle(iy, ix, 0, 0))/diagonal)
		f(float64(source[ix-lo] * float64(p.quarters(iy, ix))))
		for k := range p.sides {
			if p.onNeumann(k, iy, ix) {
				quarters := float64(p.inMesh(iy, ix) * p.turn.steps(p.middleOfWall(k, iy, ix)))
				f(float64(float64(2*p.inflow(k, iy, ix, a)) / p.spacing(k) * quarters))
			}
		}
	}
	return inverse, nil
}

// quarters returns how many quarters of a cell belong to a point, times turn.steps with grid.axis.
func (p *Problem) quarters(iy, ix int) int64 {
	return p.inMesh(iy, ix) * p.turn.steps(p.middle(iy, ix, 0, 0))
}

// inMesh returns how many quarters of a cell belong to a point: 4, or fewer on Neumann walls.
func (p *Problem) inMesh(iy, ix int) int64 {
	n := int64(4)
	for k := range p.sides {
		if p.onNeumann(k, iy, ix) {
			n /= 2
		}
	}
	return n
}

// Balance returns what is to be taken off the source, from what the ranks have surveyed and the islands of that; nil
// where the problem is not loose. It refuses a problem that nothing drives.
func (p *Problem) Balance(all []Survey, v *Islands) (*Surplus, error) {
	if !p.loose {
		return nil, nil
	}
	var sum Totals
	for _, s := range all {
		if s.Totals != nil {
			sum.add(s.Totals)
		}
	}
	gross := sum.Gross.Value()
	if gross == 0 {
		return nil, p.undriven()
	}
	quarters := 4 * int64(solver.Intervals(p.mesh.NX, p.mesh.Walls.Left)) *
		int64(solver.Intervals(p.mesh.NY, p.mesh.Walls.Top)) * p.turn.steps(p.centre())
	if v != nil {
		quarters = v.Driven[0].Quarters
	}
	t := TakenOff{Amount: sum.Net.Over(quarters), Relative: sum.Net.Value() / gross}
	return &Surplus{t, float64(math.Abs(t.Amount) * sum.Inverse)}, nil
}

// TakeOff subtracts what Balance returned from the source. It is called after TakeIslands, before the operator is read.
func (p *Problem) TakeOff(s *Surplus) {
	if s != nil {
		p.taken = s
		p.idle.forget()
	}
}

// Surplus returns by how much updates may exceed those of the source as it is given.
func (p *Problem) Surplus() float64 {
	if p.taken == nil {
		return 0
	}
	return p.taken.Update
}

// Taken returns what TakeOff was given; nil where nothing is taken off.
func (p *Problem) Taken() *Surplus { return p.taken }

// Unbalanced returns a warning if more than rounding is taken off the source; "" otherwise.
func (t *Surplus) Unbalanced() string {
	if t == nil || math.Abs(t.Relative) <= balanced {
		return ""
	}
	return fmt.Sprintf("no side has values, and what flows in adds up to %.3g of its absolute values and not to 0: "+
		"%.6g is taken off the source at each point, so that there is a solution", t.Relative, t.Amount)
}

// lessTaken subtracts what TakeOff was given from values of the source.
func (p *Problem) lessTaken(values []float64) {
	if p.taken == nil {
		return
	}
	for i := range values {
		values[i] -= p.taken.Amount
	}
}

// Mean is the sum of a row of a field over the points of the material, each counted as often as quarters of a cell
// belong to it.
type Mean struct {
	sum      pair
	Quarters int64
}

// AddTo adds the sum to an exact one.
func (m Mean) AddTo(sum *results.Sum) { m.sum.to(sum) }

// MeanOf returns that of values, which are row iy of a field.
func (p *Problem) MeanOf(iy int, values []float64) (m Mean, err error) {
	outside := make([]bool, len(values))
	if err := p.OutsideRow(iy, outside); err != nil {
		return m, err
	}
	lo, hi := p.mesh.InteriorColumns()
	for ix := lo; ix < hi; ix++ {
		if !outside[ix] {
			n := p.quarters(iy, ix)
			m.sum.add(float64(float64(n) * values[ix]))
			m.Quarters += n
		}
	}
	return m, nil
}
