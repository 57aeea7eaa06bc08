package problem

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

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

// Maxima returns the largest absolute value of the source in rows [lo, hi), as MaxSource does, and of solver.Diagonal,
// for SetUnit: 0 if the operator is not weighted. It stops when ctx ends.
func (p *Problem) Maxima(ctx context.Context, lo, hi int) (source, diagonal float64, err error) {
	if !p.weighted {
		source, err = p.MaxSource(ctx, lo, hi)
		return source, 0, err
	}
	interior := p.mesh.Interior()
	return p.maxWeighted(ctx, max(lo, interior.Lo), min(hi, interior.Hi))
}

// maxWeighted is Maxima of rows [lo, hi) of the interior of a weighted problem.
func (p *Problem) maxWeighted(ctx context.Context, lo, hi int) (source, diagonal float64, err error) {
	sources, diagonals := make([]float64, max(0, hi-lo)), make([]float64, max(0, hi-lo))
	err = parallel.Each(len(sources), func(i int) error {
		if err := ended(ctx); err != nil {
			return err
		}
		st, err := p.stencil(lo + i)
		if err != nil {
			return err
		}
		sources[i], diagonals[i] = p.largestOfRow(st), p.maxDiagonal(st, lo+i)
		return nil
	})
	for i := range sources {
		source, diagonal = max(source, sources[i]), max(diagonal, diagonals[i])
	}
	return source, diagonal, err
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
