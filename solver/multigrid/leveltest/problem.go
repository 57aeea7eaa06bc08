package leveltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"jacobi/solver"
)

// values yields random initial values, and random sources a hundredth as large. Copies of periodic rows and columns
// agree with what they copy.
type values struct {
	mesh      solver.Mesh
	magnitude solver.Magnitude
	field     []float64
}

func newValues(c Case) values {
	r := rand.New(rand.NewPCG(uint64(c.Mesh.NX), uint64(c.Mesh.NY)))
	v := values{mesh: c.Mesh, magnitude: c.Magnitude, field: make([]float64, c.Mesh.NX*c.Mesh.NY)}
	for i := range v.field {
		if v.field[i] = math.Ldexp(2*r.Float64()-1, int(c.Magnitude)); again(i / c.Mesh.NX) {
			v.field[i] = v.field[i-c.Mesh.NX]
		}
	}
	return v
}

// again reports whether row iy of the field and of the source is the same as row iy-1.
func again(iy int) bool { return iy%8 > 4 }

// RowRepeats implements solver.RowRepeater.
func (v values) RowRepeats(iy int) bool { return again(iy) }

// Row implements solver.RowSource.
func (v values) Row(iy int, dst []byte) error { return v.row(iy, dst, 1) }

func (v values) row(iy int, dst []byte, factor float64) error {
	nx, ny := v.mesh.NX, v.mesh.NY
	if v.mesh.PeriodicRows() {
		iy = 1 + (iy-1+ny-2)%(ny-2)
	}
	for x := range nx {
		from := x
		if v.mesh.PeriodicColumns() {
			from = 1 + (x-1+nx-2)%(nx-2)
		}
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(factor*v.field[iy*nx+from]))
	}
	return nil
}

// source yields the source of a case.
type source struct{ values }

// ValueRow implements solver.ValueRows.
func (s source) ValueRow(iy int, _ solver.Value, dst []byte) error { return s.row(iy, dst, 0.01) }

// ValueRepeats implements solver.ValueRepeater.
func (s source) ValueRepeats(iy int, _ solver.Value) bool { return again(iy) }

// pattern yields the fixed points of a case.
type pattern struct{ mesh solver.Mesh }

// FixedRow implements solver.FixedRows.
func (p pattern) FixedRow(iy int, dst []bool) error {
	nx, ny := p.mesh.NX, p.mesh.NY
	if p.mesh.PeriodicRows() {
		iy = 1 + (iy-1+ny-2)%(ny-2)
	}
	for x := range nx {
		from := x
		if p.mesh.PeriodicColumns() {
			from = 1 + (x-1+nx-2)%(nx-2)
		}
		bar := iy == ny/3 && from > nx/4 && from < 2*nx/3
		dst[x] = bar || p.square(iy, from) || (iy*nx+from)%397 == 5
	}
	return nil
}

// square reports whether a point belongs to the square.
func (p pattern) square(iy, ix int) bool {
	nx, ny := p.mesh.NX, p.mesh.NY
	return iy > ny/2 && iy < ny/2+9 && ix > nx/2 && ix < nx/2+12
}
