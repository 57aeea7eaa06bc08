// Package reference is the oracle of the tests: the Jacobi iteration over the whole mesh in its simplest form, with the
// norm computed by its definition. It shares no code with any backend.
package reference

import (
	"encoding/binary"
	"fmt"
	"math"

	"jacobi/solver"
)

// Jacobi is a whole mesh in memory.
type Jacobi struct {
	mesh solver.Mesh
	e    solver.Magnitude
	// field holds every value as float64. In a float32 mesh all values are float32 values, and each operation is
	// rounded to float32.
	field, next []float64
}

// New loads the initial field.
func New(mesh solver.Mesh, rows solver.RowSource, e solver.Magnitude) (*Jacobi, error) {
	j := &Jacobi{mesh: mesh, e: e, field: make([]float64, mesh.NX*mesh.NY)}
	row := make([]byte, mesh.RowBytes())
	for y := range mesh.NY {
		if err := rows.Row(y, row); err != nil {
			return nil, fmt.Errorf("reference: row %d: %w", y, err)
		}
		for x := range mesh.NX {
			j.field[y*mesh.NX+x] = j.value(row, x)
		}
	}
	j.next = append([]float64(nil), j.field...)
	j.copyPeriodicRows(j.field)
	return j, nil
}

// Sweep does one sweep and returns the sum of squares of its updates.
func (j *Jacobi) Sweep() solver.Sum {
	nx, ny := j.mesh.NX, j.mesh.NY
	for y := 1; y < ny-1; y++ {
		for x := 1; x < nx-1; x++ {
			i := y*nx + x
			f := j.field
			j.next[i] = j.update(f[i], f[i-1], f[i+1], f[i-nx], f[i+nx])
		}
	}
	sum := j.sum()
	j.field, j.next = j.next, j.field
	j.copyPeriodicRows(j.field)
	return sum
}

// update returns the new value of a point: the operator (docs/numerics.md).
func (j *Jacobi) update(_, west, east, north, south float64) float64 {
	return j.round(0.25 * j.round(j.round(west+east)+j.round(north+south)))
}

// repeats is the number of consecutive norms that must each equal the norm two sweeps earlier for a run to end.
const repeats = 100

// Ends reports whether the last of norms ends a run after one more sweep.
func Ends(norms []float64, tolerance float64) bool {
	n := len(norms)
	if norms[n-1] <= tolerance {
		return true
	}
	if n < repeats+2 {
		return false
	}
	for i := n - repeats; i < n; i++ {
		if norms[i] != norms[i-2] {
			return false
		}
	}
	return true
}

// Rows returns rows [s.Lo, s.Hi), dense, little-endian.
func (j *Jacobi) Rows(s solver.Stripe) []byte {
	var b []byte
	for _, v := range j.field[s.Lo*j.mesh.NX : s.Hi*j.mesh.NX] {
		if j.mesh.DType == solver.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

func (j *Jacobi) sum() solver.Sum {
	var sum solver.Sum
	for y := 0; y < j.mesh.NY; y += solver.GroupRows {
		for x := 0; x < j.mesh.NX; x += solver.GroupCols {
			sum.Add(j.group(y, x), j.e)
		}
	}
	return sum
}

// group adds the squares of the group whose first row and column are y0 and x0. Each pair of squares is added to the
// smallest normal number; the sum of these numbers is subtracted at the end.
func (j *Jacobi) group(y0, x0 int) float64 {
	smallest := 0x1p-1022
	if j.mesh.DType == solver.Float32 {
		smallest = 0x1p-126
	}
	acc, bias := 0.0, 0.0
	for y := max(1, y0); y < min(j.mesh.NY-1, y0+solver.GroupRows); y++ {
		var d [solver.GroupCols]float64
		for c := range d {
			if x := x0 + c; x >= 1 && x < j.mesh.NX-1 {
				d[c] = j.round(j.next[y*j.mesh.NX+x] - j.field[y*j.mesh.NX+x])
			}
		}
		left := j.fma(d[1], d[1], j.fma(d[0], d[0], smallest))
		right := j.fma(d[3], d[3], j.fma(d[2], d[2], smallest))
		acc = j.round(acc + j.round(left+right))
		bias += 2 * smallest
	}
	return acc - bias
}

// copyPeriodicRows makes row 0 the copy of row NY-2 and row NY-1 the copy of row 1, except in the fixed columns.
func (j *Jacobi) copyPeriodicRows(f []float64) {
	if !j.mesh.PeriodicRows() {
		return
	}
	nx, ny := j.mesh.NX, j.mesh.NY
	copy(f[1:nx-1], f[(ny-2)*nx+1:(ny-1)*nx-1])
	copy(f[(ny-1)*nx+1:ny*nx-1], f[nx+1:2*nx-1])
}

func (j *Jacobi) value(row []byte, x int) float64 {
	if j.mesh.DType == solver.Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(row[4*x:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(row[8*x:]))
}

// round rounds v to the field's type. For the sum, difference or product of two float32 values it returns the correctly
// rounded float32 result although v was already rounded to float64: 53 >= 2*24+2 bits (Figueroa, "When is double
// rounding innocuous?", 1995). The conversion also keeps the compiler from fusing.
func (j *Jacobi) round(v float64) float64 {
	if j.mesh.DType == solver.Float32 {
		return float64(float32(v))
	}
	return float64(v)
}

// fma returns x*y+z, rounded once to the field's type.
func (j *Jacobi) fma(x, y, z float64) float64 {
	if j.mesh.DType == solver.Float64 {
		return math.FMA(x, y, z)
	}
	p := float64(x * y) // exact: 24+24 bits
	s := p + z
	t := s - p
	err := (p - (s - t)) + (z - t) // s+err == p+z exactly (Knuth's two-sum)
	// Round s to odd, so that rounding it again to float32 rounds p+z once (Boldo and Melquiond, 2008).
	if b := math.Float64bits(s); err != 0 && b&1 == 0 {
		if (err > 0) == (s > 0) {
			s = math.Float64frombits(b + 1)
		} else {
			s = math.Float64frombits(b - 1)
		}
	}
	return float64(float32(s))
}
