package problem

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/configs"
	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// samples is the number of interior rows, and of columns in each row, that Check evaluates.
const samples = 64

// Check evaluates every value of the boundary, and the initial field and the source at 64 by 64 points that include the
// corners of the interior. It also looks for free points, and for what makes the solution unique, and takes off the
// source of a loose problem what is over. It finds most bad problems before any rank starts. Row, ValueRow and FixedRow
// find the others.
func (p *Problem) Check(ctx context.Context) error {
	walls, err := p.maxWalls(ctx)
	if err != nil {
		return err
	}
	guess, fixed, err := p.maxSample(ctx)
	if err != nil {
		return err
	}
	data := max(walls, fixed)
	largest := max(data, guess)
	if err := p.checkFixed(ctx); err != nil {
		return err
	}
	added, err := p.sampleSource(ctx)
	if err != nil {
		return err
	}
	// A sample may miss the largest value, so a small value in the sample does not mean that the problem is too small.
	if low, _ := p.magnitudes(); p.initial.constant() && p.source.constant() && !(p.weighted && p.known()) ||
		largest+added >= low {
		if err := p.CheckMagnitude(largest, added); err != nil {
			return err
		}
	}
	if err := p.checkSampled(ctx, guess, data, added); err != nil || !p.loose {
		return err
	}
	t, err := p.totals(ctx, 0, p.mesh.NY)
	if err != nil {
		return err
	}
	taken, err := p.Balance([]Survey{{Totals: t}}, p.islands)
	p.TakeOff(taken)
	return err
}

// maxWalls returns the largest absolute value of fixed walls.
func (p *Problem) maxWalls(ctx context.Context) (float64, error) {
	largest, err := p.maxColumns(ctx, 0, p.mesh.NY)
	for _, iy := range []int{0, p.mesh.NY - 1} {
		if err != nil || !p.fixedWallRow(iy) || p.mesh.PeriodicRows() {
			continue
		}
		var m float64
		m, err = p.maxInner(ctx, iy)
		largest = max(largest, m)
	}
	return largest, err
}

// Largest estimates the largest absolute value of the solution from the walls and, among samples, from the source and
// the points that problem.fixed fixes.
func (p *Problem) Largest(ctx context.Context) (float64, error) {
	walls, err := p.maxWalls(ctx)
	if err != nil {
		return 0, err
	}
	_, fixed, err := p.maxSample(ctx)
	if err != nil {
		return 0, err
	}
	source, err := p.sampleSource(ctx)
	return max(walls, fixed) + float64(p.Driven(source)/2), err
}

// maxSample returns the largest absolute values among the samples of the interior: that of points that a sweep updates,
// and that of points that problem.fixed fixes.
func (p *Problem) maxSample(ctx context.Context) (free, fixed float64, err error) {
	s := &span{}
	keeps := make([]bool, p.mesh.NX)
	size := p.mesh.DType.Size()
	lo, hi := p.mesh.InteriorColumns()
	buf := make([]byte, (hi-lo)*size)
	file := p.initial.file
	for _, iy := range spread(p.mesh.Interior()) {
		if err := ended(ctx); err != nil {
			return 0, 0, err
		}
		if file != nil {
			if err := p.fileRow(p.initial, iy, buf); err != nil {
				return 0, 0, err
			}
		}
		if p.stays() {
			if err := p.FixedRow(iy, keeps); err != nil {
				return 0, 0, err
			}
		}
		for _, ix := range spread(solver.Stripe{Lo: lo, Hi: hi}) {
			var v float64
			var err error
			if file != nil {
				v = p.get(buf[(ix-lo)*size:])
			} else if v, err = p.value(p.initial, s, iy, ix); err != nil {
				return 0, 0, err
			}
			if keeps[ix] {
				fixed = max(fixed, math.Abs(v))
			} else {
				free = max(free, math.Abs(v))
			}
		}
	}
	return free, fixed, nil
}

// sampleSource returns the largest absolute value of the source among the samples of the interior and at Neumann walls.
// All of a weighted problem is read, for its islands, unless it can have none and has allowed values everywhere.
func (p *Problem) sampleSource(ctx context.Context) (float64, error) {
	if !p.sourced() {
		return 0, nil
	}
	if p.weighted && p.known() {
		return p.sampleRows(ctx)
	}
	if p.weighted {
		s, err := p.survey(ctx, 0, p.mesh.NY, &parts{})
		if err == nil {
			p.islands, err = p.UniteSurveys([]Survey{s})
		}
		return s.Source, err
	}
	lo, hi := p.mesh.InteriorColumns()
	largest := 0.0
	r := p.take(0)
	defer p.give(r)
	at := func(iy, ix int) error {
		var b [1]float64
		err := r.sourceSpan(iy, ix, b[:])
		largest = max(largest, math.Abs(p.round(b[0])))
		return err
	}
	interior := p.mesh.Interior()
	for _, iy := range spread(interior) {
		if err := ended(ctx); err != nil {
			return 0, err
		}
		for _, ix := range spread(solver.Stripe{Lo: lo, Hi: hi}) {
			if err := at(iy, ix); err != nil {
				return 0, err
			}
		}
	}
	for _, side := range []struct {
		wall solver.Wall
		ix   int
	}{{p.mesh.Walls.Left, lo}, {p.mesh.Walls.Right, hi - 1}} {
		for iy := interior.Lo; side.wall == solver.Neumann && iy < interior.Hi; iy++ {
			if err := errors.Join(ended(ctx), at(iy, side.ix)); err != nil {
				return 0, err
			}
		}
	}
	for _, side := range []struct {
		wall solver.Wall
		iy   int
	}{{p.mesh.Walls.Top, interior.Lo}, {p.mesh.Walls.Bottom, interior.Hi - 1}} {
		if side.wall != solver.Neumann {
			continue
		}
		m, err := p.maxSource(ctx, side.iy)
		if err != nil {
			return 0, err
		}
		largest = max(largest, m)
	}
	return largest, nil
}

// known reports whether a weighted problem is known to have no islands, and coefficients, screenings and sources that
// are allowed, from bounds of their expressions.
func (p *Problem) known() bool {
	whole := box{0, float64(p.mesh.NX - 1), 0, float64(p.mesh.NY - 1)}
	within := func(q part, least, most float64) bool {
		if !q.covers() {
			return false
		}
		b := q.node.limit(whole)
		return !b.nan && b.lo >= least && b.hi <= most
	}
	return !p.mayFloat() && p.sameSides(solver.Neumann) &&
		within(p.coefficient, configs.LeastCoefficient, configs.MostCoefficient) &&
		within(p.screening, 0, math.MaxFloat64) && within(p.source, -math.MaxFloat64, math.MaxFloat64)
}

// sampleRows returns the largest absolute value of the source of a weighted operator in rows that are spread.
func (p *Problem) sampleRows(ctx context.Context) (largest float64, err error) {
	rows := spread(p.mesh.Interior())
	most := make([]float64, len(rows))
	err = parallel.Each(len(rows), func(i int) error {
		if err := ended(ctx); err != nil {
			return err
		}
		r := p.take(rows[i])
		defer p.give(r)
		st, err := r.stencil(rows[i])
		if err == nil {
			most[i] = p.largestOfRow(st)
		}
		return err
	})
	for _, v := range most {
		largest = max(largest, v)
	}
	return largest, err
}

// spread returns at most samples of the numbers of s, evenly spread and including the first and the last.
func spread(s solver.Stripe) []int {
	n := s.Rows()
	count := min(n, samples)
	list := make([]int, count)
	for i := range list {
		list[i] = s.Lo + i*(n-1)/max(1, count-1)
	}
	return list
}

// MaxSource returns the largest absolute value of the source of the operator in rows [lo, hi), rounded to the field's
// type, worked out on all cores. It stops when ctx ends.
func (p *Problem) MaxSource(ctx context.Context, lo, hi int) (largest float64, err error) {
	interior := p.mesh.Interior()
	lo, hi = max(lo, interior.Lo), min(hi, interior.Hi)
	if !p.sourced() {
		return 0, nil
	}
	if p.weighted {
		m, err := p.Maxima(ctx, lo, hi)
		return m.Source, err
	}
	if p.source.constant() && !p.left.node.onY && !p.right.node.onY { // only the first and the last row differ
		for iy := lo; iy < hi; iy++ {
			v, err := p.maxSource(ctx, iy)
			if err != nil {
				return 0, err
			}
			largest = max(largest, v)
			if iy > interior.Lo {
				iy = max(iy, min(hi, interior.Hi-1)-1) // skip to the last row
			}
		}
		return largest, nil
	}
	values := make([]float64, max(0, hi-lo))
	err = parallel.Each(len(values), func(i int) (err error) {
		values[i], err = p.maxSource(ctx, lo+i)
		return err
	})
	for _, v := range values {
		largest = max(largest, v)
	}
	return largest, err
}

// maxSource returns the largest absolute value of the source in interior row iy, rounded to the field's type.
func (p *Problem) maxSource(ctx context.Context, iy int) (float64, error) {
	largest := 0.0
	r := p.take(iy)
	defer p.give(r)
	var buf [chunk]float64
	lo, hi := p.mesh.InteriorColumns()
	for col := lo; col < hi; col += chunk {
		if err := ended(ctx); err != nil {
			return 0, err
		}
		values := buf[:min(chunk, hi-col)]
		if err := r.sourceSpan(iy, col, values); err != nil {
			return 0, err
		}
		for _, b := range values {
			largest = max(largest, math.Abs(b))
		}
	}
	return p.round(largest), nil // rounding is monotone
}

// ended returns an error with the cause if ctx has ended, else nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("problem: working out its values: %w", context.Cause(ctx))
}

// maxColumns returns the largest absolute value of fixed left and right walls in rows [lo, hi).
func (p *Problem) maxColumns(ctx context.Context, lo, hi int) (largest float64, err error) {
	for _, side := range []struct {
		wall  solver.Wall
		part  part
		value func(iy int) (float64, error)
	}{{p.mesh.Walls.Left, p.left, p.Left}, {p.mesh.Walls.Right, p.right, p.Right}} {
		for iy := lo; side.wall == solver.Dirichlet && iy < hi; iy++ {
			if err := ended(ctx); err != nil {
				return 0, err
			}
			v, err := side.value(iy)
			if err != nil {
				return 0, err
			}
			largest = max(largest, math.Abs(v))
			if !side.part.node.onY {
				break
			}
		}
	}
	return largest, nil
}

// maxInner returns the largest absolute value of row iy but for the columns of fixed and periodic walls.
func (p *Problem) maxInner(ctx context.Context, iy int) (float64, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	q, from := p.inner(iy)
	largest := 0.0
	lo, hi := p.mesh.InteriorColumns()
	if q.file != nil {
		size := p.mesh.DType.Size()
		buf := make([]byte, (hi-lo)*size)
		err := p.fileRow(q, from, buf)
		for i := 0; i < len(buf); i += size {
			largest = max(largest, math.Abs(p.get(buf[i:])))
		}
		return largest, err
	}
	if !q.node.onX {
		v, err := p.value(q, &span{}, from, lo)
		return math.Abs(v), err
	}
	err := p.chunks(q, from, func(col int, values []float64) error {
		if err := ended(ctx); err != nil { // a row may be long
			return err
		}
		for i, v := range values {
			// The negated comparison also catches NaN.
			if a := math.Abs(v); !(a <= largest) {
				if err := p.finite(q, from, col+i, v); err != nil {
					return err
				}
				largest = a
			}
		}
		return nil
	})
	return p.round(largest), err // rounding is monotone
}

// CheckMagnitude refuses a problem if the squares of updates would leave the range of the field's type. maxAbs is the
// largest absolute value of the whole initial field, and maxSource that of the source.
func (p *Problem) CheckMagnitude(maxAbs, maxSource float64) error {
	low, high := p.magnitudes()
	sum := maxAbs + maxSource
	if sum == 0 || sum >= low && sum <= high {
		return nil
	}
	advice := "scale the problem"
	if wideLow, wideHigh := limits(solver.Float64); p.mesh.DType == solver.Float32 && sum >= wideLow &&
		sum <= wideHigh {
		advice += " or use grid.dtype float64"
	}
	largest := fmt.Sprintf("its largest absolute value is %g", maxAbs)
	if maxSource != 0 {
		largest += fmt.Sprintf(", and its source adds up to %g a sweep, %g together", maxSource, sum)
	}
	return fmt.Errorf("problem: %s; with %s 0 or %.3g to %.3g is allowed, because the norm squares it: %s", largest,
		p.mesh.DType, low, high, advice)
}

// Magnitude returns the exponent that bounds the updates of all sweeps, for the largest absolute values of the whole
// initial field and of the source. The first update is at most 2 maxAbs + maxSource, and a sweep of an update without
// source makes it no larger. With the plain average no value ever exceeds maxAbs. Otherwise values may grow, and the
// rounding of their updates with them, for which there is one bit more.
func (p *Problem) Magnitude(maxAbs, maxSource float64) solver.Magnitude {
	if sum := maxAbs + maxSource; (p.weighted || p.general()) && sum != 0 {
		return solver.MagnitudeOf(sum) + 1
	}
	return solver.MagnitudeOf(maxAbs)
}

func (p *Problem) magnitudes() (low, high float64) { return limits(p.mesh.DType) }

// limits returns the range of the largest absolute value of a problem of type d.
func limits(d solver.DType) (low, high float64) {
	if d == solver.Float32 {
		return float64(float32(1e-12)), 1e18 // rounded like the values that are compared with it
	}
	return 1e-120, 1e150
}
