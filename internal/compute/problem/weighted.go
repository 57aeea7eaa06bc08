package problem

import (
	"fmt"
	"math"
	"slices"

	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// weightedRow is ValueRow of a weighted operator.
func (p *Problem) weightedRow(iy int, k solver.Value, dst []byte) error {
	size := p.mesh.DType.Size()
	if k >= solver.Diagonal {
		size = 8
	}
	if iy < 0 || iy >= p.mesh.NY || len(dst) != p.mesh.NX*size || k > solver.RightHandSide {
		return fmt.Errorf("value %d of row %d of %d into %d bytes, not %d", k, iy, p.mesh.NY, len(dst),
			p.mesh.NX*size)
	}
	r := p.take(iy)
	defer p.give(r)
	row, _ := p.mesh.Canonical(iy)
	if k == solver.Coefficient || k == solver.RightHandSide {
		return r.assemblyRow(row, k, dst)
	}
	st, err := r.stencil(row)
	if err != nil {
		return err
	}
	var buf [chunk]float64
	unit := math.Ldexp(1, -p.unit)
	for col := 0; col < p.mesh.NX; col += chunk {
		values := buf[:min(chunk, p.mesh.NX-col)]
		switch {
		case k >= solver.Diagonal:
			p.equations(st, k, row, col, unit, values)
			solver.Float64.Encode(dst[8*col:], values)
			continue
		case k == solver.Source:
			values = st.b[col:][:len(values)]
		default:
			st.weights(k, col, values)
		}
		p.mesh.DType.Encode(dst[size*col:], values)
	}
	if p.mesh.PeriodicColumns() {
		copy(dst[:size], dst[len(dst)-2*size:])
		copy(dst[len(dst)-size:], dst[size:2*size])
	}
	return nil
}

// Assembly implements solver.Assembled. Cells are left out: their faces have arithmetic means, which round differently
// even between equal cells.
func (p *Problem) Assembly() (solver.Assembly, bool) {
	whole := box{0, float64(p.mesh.NX - 1), 0, float64(p.mesh.NY - 1)}
	follows := p.weighted && !p.porous && p.coefficient.covers() && !p.coefficient.node.jumps(whole) &&
		cellsOf(p.coefficient.node) == nil && p.fixed.none() && p.screening.zero() && !p.transfers() && !p.turn.on &&
		!p.mesh.PeriodicColumns() && !p.mesh.PeriodicRows()
	return solver.Assembly{HX: p.numbers.hx, HY: p.numbers.hy, Unit: math.Ldexp(1, -p.unit)}, follows
}

// assemblyRow writes the coefficients or the right-hand sides of row iy, which is canonical, to dst.
func (p *rows) assemblyRow(iy int, k solver.Value, dst []byte) error {
	here, err := p.material(iy)
	if err != nil {
		return err
	}
	values := here.a
	if k == solver.RightHandSide {
		st := &p.equations
		p.row = -1 // they are those of no row from here on
		if st.free, err = p.free(iy); err != nil {
			return err
		}
		st.b, st.diagonal = sized(st.b, p.mesh.NX), sized(st.diagonal, p.mesh.NX)
		values = st.b
		if p.fixedWallRow(iy) {
			clear(values)
		} else if err := p.rightHandSideWithWalls(iy, st, here); err != nil {
			return err
		}
	}
	solver.Float64.Encode(dst, values)
	return nil
}

// equations writes the diagonals of the equations of points of row iy, from column col on, or couplings of them, to
// dst, in units of a times unit, a power of two: half on a Neumann or Robin wall, and a quarter where two of them meet.
// The diagonal of a point that no sweep updates is 0.
func (p *Problem) equations(st *stencil, k solver.Value, iy, col int, unit float64, dst []float64) {
	hx, hy, across := p.numbers.hx, p.numbers.hy, 1.0
	if p.onNeumann(north, iy, 0) || p.onNeumann(south, iy, 0) {
		across = 0.5
	}
	from := st.diagonal
	switch {
	case k == solver.EastFace:
		from = st.alongX
	case k == solver.SouthFace && iy == p.mesh.NY-1: // the mirror's
		clear(dst)
		return
	case k == solver.SouthFace:
		from, across = st.alongY, 1
	}
	rowmath.Scale(dst, from[col:], across, hx, hy, unit)
	for side, ix := range [2]int{0, p.mesh.NX - 1} {
		if i := ix - col; p.onNeumann(side, iy, ix) && k != solver.EastFace && i >= 0 && i < len(dst) {
			dst[i] = p.inEquation(float64(from[ix]*across*0.5), unit)
		}
	}
}

// inEquation returns a diagonal or a coupling as the equation of a point has it, away from Neumann and Robin walls.
func (p *Problem) inEquation(v, unit float64) float64 {
	return float64(float64(v*p.numbers.hx)*p.numbers.hy) * unit
}

// Maxima are largest values of rows of the operator, 0 without any. The last four are those of a weighted one.
type Maxima struct {
	Source   float64 // the absolute value of the source, as MaxSource has it
	Diagonal float64 // of solver.Diagonal
	Centre   float64 // the diagonal D of the equation of a point (docs/numerics.md)
	Barrier  float64 // 1/c of a face of a free point with a coefficient c above 0
	Open     bool    // a free point has a face without a coefficient
}

// add makes m the maxima of both.
func (m *Maxima) add(o Maxima) {
	m.Source, m.Diagonal = max(m.Source, o.Source), max(m.Diagonal, o.Diagonal)
	m.Centre, m.Barrier, m.Open = max(m.Centre, o.Centre), max(m.Barrier, o.Barrier), m.Open || o.Open
}

// maximaOf returns those of row iy.
func (p *Problem) maximaOf(iy int, st *stencil) Maxima {
	weakest, open := p.barrier(iy, st)
	return Maxima{Source: p.largestOfRow(st), Diagonal: p.maxDiagonal(st, iy), Centre: p.maxCentre(st, iy),
		Barrier: min(1/weakest, math.MaxFloat64), Open: open}
}

// largestOfRow returns the largest absolute value of the source of a row, rounded to the field's type.
func (p *Problem) largestOfRow(st *stencil) float64 {
	return p.round(rowmath.Largest(st.b)) // rounding is monotone
}

// maxCentre returns the largest D of row iy, with grid.axis over r: what r adds to the contrast lowers no eigenvalue.
func (p *Problem) maxCentre(st *stencil, iy int) (most float64) {
	if !p.turn.on {
		return rowmath.Largest(st.diagonal)
	}
	for ix, d := range st.diagonal {
		most = max(most, d/p.turn.radius(p.middle(iy, ix, 0, 0)))
	}
	return most
}

// maxDiagonal returns the largest Diagonal of row iy in units of a. Between two walls it grows with D.
func (p *Problem) maxDiagonal(st *stencil, iy int) (most float64) {
	last := len(st.diagonal) - 1
	inner := st.diagonal[1:last]
	at := 1 + max(0, slices.Index(inner, rowmath.Largest(inner)))
	for _, ix := range [3]int{0, at, last} {
		var value [1]float64
		p.equations(st, solver.Diagonal, iy, ix, 1, value[:])
		most = max(most, value[0])
	}
	return most
}

// SetMaxima sets the power of two by which Diagonal, EastFace and SouthFace are divided, from the maxima of the whole
// mesh, so that the largest Diagonal lies between 1/2 and 1. It sets the contrast of the operator, too. It is called
// before Operator and before rows of these are read.
func (p *Problem) SetMaxima(whole Maxima) {
	_, p.unit = math.Frexp(whole.Diagonal)
	hx, hy := p.numbers.hx, p.numbers.hy
	p.voids = whole.Open
	p.contrast = whole.Centre * whole.Barrier / (2/float64(hx*hx) + 2/float64(hy*hy)) * (1 + 1e-12)
}
