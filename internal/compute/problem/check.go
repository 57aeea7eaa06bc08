package problem

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"jacobi/configs"
	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// samples is the number of interior rows, and of columns in each row, that Check evaluates.
const samples = 64

// sampled returns the rows and columns of samples.
func (p *Problem) sampled() (rows, columns []int) {
	lo, hi := p.mesh.InteriorColumns()
	return spread(p.mesh.Interior().Lo, p.mesh.Interior().Hi, samples), spread(lo, hi, samples)
}

// Check evaluates every value of the boundary, and the initial field and the source at 64 by 64 points that include the
// corners of the interior. It also looks for free points, and for what makes the solution unique, and takes off the
// source of a loose problem what is over. It finds most bad problems before any rank starts. Row, ValueRow and FixedRow
// find the others.
func (p *Problem) Check(ctx context.Context) error {
	guess, data, err := p.sampleField(ctx)
	if err != nil {
		return err
	}
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

// Largest estimates the largest absolute value of the solution from the walls and, among samples, from the source and
// the points that problem.fixed fixes.
func (p *Problem) Largest(ctx context.Context) (float64, error) {
	_, data, err := p.sampleField(ctx)
	if err != nil {
		return 0, err
	}
	source, err := p.sampleSource(ctx)
	return data + float64(p.Driven(source)/2), err
}

// sampleField is MaxGuess for the fixed walls and the samples of the interior: whole rows of a file.
func (p *Problem) sampleField(ctx context.Context) (guess, data float64, err error) {
	walls, err := p.maxColumns(ctx, 0, p.mesh.NY)
	if err != nil {
		return 0, 0, err
	}
	var whole []int
	for _, iy := range [2]int{0, p.mesh.NY - 1} {
		if p.wallRow(iy) {
			whole = append(whole, iy)
		}
	}
	rows, columns := p.sampled()
	if p.initial.file != nil {
		rows, whole = nil, append(rows, whole...)
	}
	keeps := make([]bool, p.mesh.NX)
	for _, iy := range rows {
		if p.stays() {
			err = p.FixedRow(iy, keeps)
		}
		if err := cmp.Or(ended(ctx), err); err != nil {
			return 0, 0, err
		}
		for _, ix := range columns {
			v, err := p.value(p.initial, &span{}, iy, ix)
			switch v = math.Abs(v); {
			case err != nil:
				return 0, 0, err
			case keeps[ix]:
				data = max(data, v)
			default:
				guess = max(guess, v)
			}
		}
	}
	inRows, fixed, err := p.maxRows(ctx, whole)
	return max(guess, inRows), max(data, fixed, walls), err
}

// sampleSource returns the largest absolute value of the source in the samples of the interior and at Neumann walls.
// All of a weighted problem is read, for its islands, unless it can have none and has allowed values everywhere.
func (p *Problem) sampleSource(ctx context.Context) (float64, error) {
	if !p.sourced() {
		return 0, nil
	}
	if p.weighted && !p.known() {
		s, err := p.survey(ctx, 0, p.mesh.NY, &parts{})
		if err == nil {
			p.islands, err = p.UniteSurveys([]Survey{s})
		}
		return s.Source, err
	}
	rows, columns := p.sampled()
	if p.weighted {
		return p.maxSources(ctx, rows)
	}
	var whole []int
	interior := p.mesh.Interior()
	for k, iy := range [2]int{interior.Lo, interior.Hi - 1} {
		if p.sides[north+k].wall == solver.Neumann {
			whole = append(whole, iy)
		}
	}
	largest, err := p.maxSources(ctx, whole)
	if err != nil {
		return 0, err
	}
	r := p.take(0)
	defer p.give(r)
	at := func(iy, ix int) error {
		var b [1]float64
		err := cmp.Or(ended(ctx), r.sourceSpan(iy, ix, b[:]))
		largest = max(largest, math.Abs(p.round(b[0])))
		return err
	}
	for _, iy := range rows {
		for _, ix := range columns {
			if err := at(iy, ix); err != nil {
				return 0, err
			}
		}
	}
	for k, ix := range [2]int{0, p.mesh.NX - 1} {
		for iy := interior.Lo; iy < interior.Hi && p.onNeumann(k, iy, ix); iy++ {
			if err := at(iy, ix); err != nil {
				return 0, err
			}
		}
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

// spread returns at most that many of the numbers in [lo, hi), evenly spread and including the first and the last.
func spread(lo, hi, most int) []int {
	list := make([]int, max(0, min(hi-lo, most)))
	for i := range list {
		list[i] = lo + i*(hi-lo-1)/max(1, len(list)-1)
	}
	return list
}

// MaxSource returns the largest absolute value of the source of the operator in rows [lo, hi), rounded to the field's
// type, worked out on all cores. It stops when ctx ends.
func (p *Problem) MaxSource(ctx context.Context, lo, hi int) (float64, error) {
	if p.weighted {
		m, err := p.Maxima(ctx, lo, hi)
		return m.Source, err
	}
	if !p.sourced() {
		return 0, nil
	}
	interior := p.mesh.Interior()
	lo, hi = max(lo, interior.Lo), min(hi, interior.Hi)
	return p.maxSources(ctx, spread(lo, hi, hi-lo))
}

// maxSources is MaxSource for some rows of the interior.
func (p *Problem) maxSources(ctx context.Context, rows []int) (float64, error) {
	most := make([]float64, len(rows))
	err := parallel.Each(len(rows), func(i int) error {
		if i > 0 && rows[i] == rows[i-1]+1 && p.ValueRepeats(rows[i], solver.Source) {
			return ended(ctx)
		}
		r := p.take(rows[i])
		defer p.give(r)
		if p.weighted {
			st, err := r.stencil(rows[i])
			if err == nil {
				most[i] = p.largestOfRow(st)
			}
			return cmp.Or(err, ended(ctx))
		}
		var buf [chunk]float64
		lo, hi := p.mesh.InteriorColumns()
		for col := lo; col < hi; col += chunk {
			values := buf[:min(chunk, hi-col)]
			if err := cmp.Or(ended(ctx), r.sourceSpan(rows[i], col, values)); err != nil {
				return err
			}
			for _, b := range values {
				most[i] = max(most[i], math.Abs(b))
			}
		}
		return nil
	})
	return p.round(rowmath.Largest(most)), err // rounding is monotone
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
	for k, ix := range [2]int{0, p.mesh.NX - 1} {
		for iy := lo; p.wallColumn(ix) && iy < hi; iy++ {
			v, err := p.value(p.sides[k].part, &span{}, iy, ix)
			if err := cmp.Or(ended(ctx), err); err != nil {
				return 0, err
			}
			largest = max(largest, math.Abs(v))
			if !p.sides[k].node.onY {
				break
			}
		}
	}
	return largest, nil
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
