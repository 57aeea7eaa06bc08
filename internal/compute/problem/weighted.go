package problem

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// weightedRow is ValueRow of a weighted operator.
func (p *Problem) weightedRow(iy int, k solver.Value, dst []byte) error {
	size := p.mesh.DType.Size()
	if k >= solver.Diagonal {
		size = 8
	}
	if iy < 0 || iy >= p.mesh.NY || len(dst) != p.mesh.NX*size || k > solver.SouthFace {
		return fmt.Errorf("value %d of row %d of %d into %d bytes, not %d", k, iy, p.mesh.NY, len(dst),
			p.mesh.NX*size)
	}
	clear(dst)
	row, _ := p.mesh.Canonical(iy)
	st, err := p.stencil(row)
	if err != nil {
		return err
	}
	for ix := range p.mesh.NX {
		switch {
		case k >= solver.Diagonal:
			v := math.Ldexp(p.equation(st, k, row, ix), -p.unit)
			binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(v))
		case k == solver.Source:
			p.put(dst[ix*size:][:size], st.b[ix])
		default:
			p.put(dst[ix*size:][:size], st.weights[k-solver.West][ix])
		}
	}
	if p.mesh.PeriodicColumns() {
		copy(dst[:size], dst[len(dst)-2*size:])
		copy(dst[len(dst)-size:], dst[size:2*size])
	}
	return nil
}

// equation returns the diagonal of the equation of a point, or one of its couplings, in units of a: half on a Neumann
// or Robin wall, and a quarter where two of them meet.
func (p *Problem) equation(st *stencil, k solver.Value, iy, ix int) float64 {
	w, hx, hy := p.mesh.Walls, p.numbers.hx, p.numbers.hy
	across, along := 1.0, 1.0
	if iy == 0 && w.Top == solver.Neumann || iy == p.mesh.NY-1 && w.Bottom == solver.Neumann {
		across = 0.5
	}
	if ix == 0 && w.Left == solver.Neumann || ix == p.mesh.NX-1 && w.Right == solver.Neumann {
		along = 0.5
	}
	v := 0.0
	switch k {
	case solver.Diagonal:
		if !st.free[ix] {
			return 0
		}
		v = st.diagonal[ix] * across * along
	case solver.EastFace:
		v = st.east[ix] / float64(hx*hx) * across
	case solver.SouthFace:
		v = st.south[ix] / float64(hy*hy) * along
	}
	return float64(v*hx) * hy
}

// Maxima are largest values of rows of the operator, 0 without any. The last three are those of a weighted one.
type Maxima struct {
	Source   float64 // the absolute value of the source, as MaxSource has it
	Diagonal float64 // of solver.Diagonal, for SetUnit
	Centre   float64 // the diagonal D of the equation of a point (docs/numerics.md)
	Barrier  float64 // 1/c of a face of a free point, math.MaxFloat64 if c is 0
}

// Maxima returns those of rows [lo, hi). It stops when ctx ends.
func (p *Problem) Maxima(ctx context.Context, lo, hi int) (m Maxima, err error) {
	if !p.weighted {
		m.Source, err = p.MaxSource(ctx, lo, hi)
		return m, err
	}
	interior := p.mesh.Interior()
	lo, hi = max(lo, interior.Lo), min(hi, interior.Hi)
	rows := make([]Maxima, max(0, hi-lo))
	err = parallel.Each(len(rows), func(i int) error {
		if err := ended(ctx); err != nil {
			return err
		}
		st, err := p.stencil(lo + i)
		if err != nil {
			return err
		}
		rows[i] = Maxima{Source: p.largestOfRow(st), Diagonal: p.maxDiagonal(st, lo+i),
			Centre: slices.Max(st.diagonal), Barrier: min(1/st.weakest, math.MaxFloat64)}
		return nil
	})
	for _, r := range rows {
		m.Source, m.Diagonal = max(m.Source, r.Source), max(m.Diagonal, r.Diagonal)
		m.Centre, m.Barrier = max(m.Centre, r.Centre), max(m.Barrier, r.Barrier)
	}
	return m, err
}

// Contrast returns by what factor the least eigenvalue of a weighted operator may be less than that of equal
// coefficients, from the maxima of the whole mesh. It is infinite where there is no material.
func (p *Problem) Contrast(m Maxima) float64 {
	if m.Barrier == math.MaxFloat64 {
		return math.Inf(1)
	}
	hx, hy := p.numbers.hx, p.numbers.hy
	return m.Centre * m.Barrier / (2/float64(hx*hx) + 2/float64(hy*hy)) * (1 + 1e-12)
}

// largestOfRow returns the largest absolute value of the source of a row, rounded to the field's type.
func (p *Problem) largestOfRow(st *stencil) (largest float64) {
	for _, b := range st.b {
		largest = max(largest, math.Abs(b))
	}
	return p.round(largest) // rounding is monotone
}

func (p *Problem) maxDiagonal(st *stencil, iy int) (largest float64) {
	for ix := range p.mesh.NX {
		largest = max(largest, p.equation(st, solver.Diagonal, iy, ix))
	}
	return largest
}

// SetUnit sets the power of two by which Diagonal, EastFace and SouthFace are divided, from the largest diagonal of the
// whole mesh (see Maxima), so that it lies between 1/2 and 1. It is called before rows of these are read.
func (p *Problem) SetUnit(largest float64) { _, p.unit = math.Frexp(largest) }
