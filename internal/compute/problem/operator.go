package problem

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// Operator returns the update of a point. Its rows are those of ValueRow and FixedRow.
func (p *Problem) Operator() solver.Operator {
	var o solver.Operator
	if p.faulty {
		return o
	}
	switch {
	case p.weighted:
		ratio := p.numbers.hx / p.numbers.hy
		o.Weighted, o.Ratio, o.Contrast, o.Open = true, float64(ratio*ratio), p.contrast, p.voids
	case p.general():
		o.Scale, o.Blend = p.round(p.numbers.scale), p.round(p.numbers.blend)
	}
	o.Loose = p.loose
	if p.sourced() {
		o.Values = p
	}
	if p.stays() {
		o.Fixed = p
	}
	return o
}

// general reports whether the update is another one than the plain average.
func (p *Problem) general() bool { return !p.numbers.unit() || p.sourced() }

// sourced reports whether the operator has a source. A weighted one always does.
func (p *Problem) sourced() bool {
	return p.weighted || !p.source.zero() ||
		slices.ContainsFunc(p.sides[:], func(s side) bool { return s.wall == solver.Neumann && !s.zero() })
}

// Spacings returns the distances between neighbouring columns and rows, in the unit of grid.width.
func (p *Problem) Spacings() (hx, hy float64) { return p.numbers.hx, p.numbers.hy }

// Diagonal returns the diagonal of the discrete equations, a (2/hx^2 + 2/hy^2) + k2, or 0 if it differs between points.
// An update is the residual divided by it.
func (p *Problem) Diagonal() float64 {
	if p.weighted {
		return 0
	}
	return p.a / p.numbers.perSource
}

// Screening returns k2, divided by the coefficient, of a problem whose operator is not weighted.
func (p *Problem) Screening() float64 { return p.numbers.screening }

// Plain implements results.Problem.
func (p *Problem) Plain() bool { return p.source.zero() && p.screening.zero() && p.taken == nil }

// ValueRow writes a value of the points of row iy, as solver.ValueRows says: the source or, if the operator is
// weighted, any. Points of fixed walls have the source 0. A value that is not finite in the field's type is an error.
func (p *Problem) ValueRow(iy int, k solver.Value, dst []byte) error {
	if p.weighted {
		return p.weightedRow(iy, k, dst)
	}
	if k != solver.Source {
		return fmt.Errorf("the %v of points: they have a source only", k)
	}
	if iy < 0 || iy >= p.mesh.NY || len(dst) != p.mesh.RowBytes() {
		return fmt.Errorf("source of row %d of %d into %d bytes, not %d", iy, p.mesh.NY, len(dst),
			p.mesh.RowBytes())
	}
	clear(dst)
	iy, _ = p.mesh.Canonical(iy)
	if p.fixedWallRow(iy) {
		return nil
	}
	size := p.mesh.DType.Size()
	lo, hi := p.mesh.InteriorColumns()
	var buf [chunk]float64
	r := p.take(iy)
	defer p.give(r)
	for col := lo; col < hi; col += chunk {
		values := buf[:min(chunk, hi-col)]
		if err := r.sourceSpan(iy, col, values); err != nil {
			return err
		}
		p.mesh.DType.Encode(dst[col*size:], values)
	}
	if p.mesh.PeriodicColumns() {
		copy(dst[:size], dst[len(dst)-2*size:])
		copy(dst[len(dst)-size:], dst[size:2*size])
	}
	return nil
}

// fixedWallRow reports whether row iy is that of a fixed wall.
func (p *Problem) fixedWallRow(iy int) bool {
	interior := p.mesh.Interior()
	return iy < interior.Lo || iy >= interior.Hi
}

// sourceSpan computes b at interior points of row iy from column col on, without rounding it to the field's type. It
// returns an error if b is not finite in that type. The problem is not weighted: stencils have the b of one that is.
func (p *rows) sourceSpan(iy, col int, dst []float64) error {
	s := p.span.at(iy, col)
	if err := p.rightHandSide(s, dst); err != nil {
		return err
	}
	for i, f := range dst {
		if p.a != 1 {
			f = float64(f / p.a)
		}
		dst[i] = float64(f * p.numbers.perSource)
	}
	for k := range p.sides {
		side, per := &p.sides[k], p.numbers.perX
		if k >= north {
			per = p.numbers.perY
		}
		lo, hi := p.columnsOn(k, iy)
		for ix := max(lo, col); ix < min(hi, col+len(dst)) && side.wall == solver.Neumann; ix++ {
			g := p.alongWall(side.inflow, side.part, k, iy, ix)
			if err := p.finite(side.part, iy, ix, g); err != nil {
				return err
			}
			if side.robin() { // a du/dn
				g /= p.a
			}
			dst[ix-col] += float64(g * per)
		}
	}
	for i, b := range dst {
		if r := p.round(b); r-r != 0 { // NaN or infinite
			return p.tooLarge(iy, col+i)
		}
	}
	return nil
}

// tooLarge refuses an equation that is not finite in the field's type. It names what adds to it.
func (p *Problem) tooLarge(iy, ix int) error {
	causes := p.drivers(iy, ix)
	if p.weighted && !p.screening.zero() {
		causes = strings.TrimPrefix(fmt.Sprintf("%s, %s %q", causes, p.screening.key, p.screening.text), ", ")
	}
	return fmt.Errorf("%s: too large for %v in the equation of %s", causes, p.mesh.DType, p.where(iy, ix))
}

// drivers names what may add something to the equation of a point: the source, and the walls on which it lies.
func (p *Problem) drivers(iy, ix int) string {
	var causes []string
	add := func(q part, adds bool) {
		if adds {
			causes = append(causes, fmt.Sprintf("%s %q", q.key, q.text))
		}
	}
	add(p.source, !p.source.zero())
	for k, s := range p.sides {
		add(s.part, p.onNeumann(k, iy, ix))
	}
	return strings.Join(causes, ", ")
}

// rightHandSide writes the values of problem.source at the columns of the span to dst. A value that is not finite is an
// error, or 0 outside the material.
func (p *rows) rightHandSide(s *span, dst []float64) error {
	if p.source.zero() {
		clear(dst)
		p.lessTaken(dst)
		return nil
	}
	if p.source.file == nil {
		p.source.node.fill(s, dst)
		p.worked()
	} else if err := p.fromFile(p.source, s, dst); err != nil {
		return err
	}
	if err := p.overSquares(p.density, s.row, s.col, dst); err != nil {
		return err
	}
	checked := dst
	if !p.source.node.onX && p.source.file == nil && !p.density.spread {
		checked = dst[:min(1, len(dst))] // all are the same
	}
	finite := rowmath.Within(checked, -math.MaxFloat64, math.MaxFloat64) // of the first values
	if finite == len(checked) {
		finite = len(dst)
	}
	for i := finite; i < len(dst); i++ {
		v := dst[i]
		if v-v == 0 {
			continue
		}
		if outside, err := p.outside(s.row, s.col+i); err != nil {
			return err
		} else if !outside {
			return p.finite(p.source, s.row, s.col+i, v)
		}
		dst[i] = 0
	}
	p.lessTaken(dst)
	return nil
}

// fromFile reads the values of the file of q, which has values of float64, at the columns of the span.
func (p *Problem) fromFile(q part, s *span, dst []float64) error {
	p.worked()
	s.raw = sized(s.raw, 8*len(dst))
	if err := q.file.read(s.raw, s.row, s.col); err != nil {
		return fmt.Errorf("%s %q: row %d: %w", q.key, q.text, s.row, err)
	}
	solver.Float64.Decode(dst, s.raw)
	return nil
}
