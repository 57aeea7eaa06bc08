package solver

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// DType is the floating-point type of a field.
type DType uint8

// The two types of field. Their values are part of the wire format.
const (
	Float32 DType = 4
	Float64 DType = 8
)

// ParseDType returns the type called name: "float32" or "float64".
func ParseDType(name string) (DType, error) {
	switch name {
	case "float32":
		return Float32, nil
	case "float64":
		return Float64, nil
	}
	return 0, fmt.Errorf("dtype %q: allowed are float32 and float64", name)
}

// Size returns the bytes of one value.
func (d DType) Size() int { return int(d) }

// String returns "float32" or "float64".
func (d DType) String() string {
	switch d {
	case Float32:
		return "float32"
	case Float64:
		return "float64"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Decode writes the values of a dense row, little-endian, to dst, which has as many. Its loops and those of Encode are
// written so that the compiler finds all places to lie in the row, which makes them three to four times as fast.
func (d DType) Decode(dst []float64, row []byte) {
	row = row[:d.Size()*len(dst)]
	if d == Float32 {
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(row[4*i : 4*i+4])))
		}
		return
	}
	if littleEndian {
		copy(bytesOf(dst), row)
		return
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(row[8*i : 8*i+8]))
	}
}

// Encode is the converse of Decode. It rounds values to the type.
func (d DType) Encode(row []byte, values []float64) {
	row = row[:d.Size()*len(values)]
	if d == Float32 {
		for i, v := range values {
			binary.LittleEndian.PutUint32(row[4*i:4*i+4], math.Float32bits(float32(v)))
		}
		return
	}
	if littleEndian {
		copy(row, bytesOf(values))
		return
	}
	for i, v := range values {
		binary.LittleEndian.PutUint64(row[8*i:8*i+8], math.Float64bits(v))
	}
}

// littleEndian says that this machine's float64 are those of rows: a copy takes less time than a loop.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf returns the memory of values.
func bytesOf(values []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 8*len(values))
}

// Mesh is the whole grid: NY rows of NX columns, row-major, row 0 on top, walls included. Where top and bottom are
// periodic, row 0 is the copy of row NY-2 and row NY-1 the copy of row 1. Where left and right are periodic, column 0
// is the copy of column NX-2 and column NX-1 the copy of column 1.
type Mesh struct {
	NX, NY int
	DType  DType
	Walls  Walls
}

// RowBytes returns the bytes of one dense row of NX values.
func (m Mesh) RowBytes() int { return m.NX * m.DType.Size() }

// Canonical returns the row of the mesh that holds the values of row, which may lie in a halo above row 1 or below row
// NY-2: with periodic top and bottom the interior repeats every NY-2 rows. ok is false for a row beyond the end of the
// mesh.
func (m Mesh) Canonical(row int) (canonical int, ok bool) {
	if m.PeriodicRows() {
		n := m.NY - 2
		return 1 + ((row-1)%n+n)%n, true
	}
	return row, row >= 0 && row < m.NY
}

// RowSource yields the initial field.
type RowSource interface {
	// Row writes row iy, 0 <= iy < NY, boundary included, into dst: NX values of the mesh's type, little-endian, dense.
	// Several goroutines may call it at once.
	Row(iy int, dst []byte) error
}

// Zeros is a field of zeros.
type Zeros struct{}

// Row implements RowSource.
func (Zeros) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}

// Magnitude is an exponent E with |new - old| <= 2^(E+1) at every point in every sweep; the unit of the exact norm
// follows from it (see Sum). For the plain average it is MagnitudeOf the largest absolute value of the initial field
// and its boundary: a sweep is an average, and rounding is monotone, so no later value exceeds 2^E. docs/numerics.md
// has the one for other operators.
type Magnitude int

// MagnitudeOf returns the exponent E of the smallest power of two with maxAbs <= 2^E; 0 for a maxAbs of 0.
func MagnitudeOf(maxAbs float64) Magnitude {
	if maxAbs == 0 {
		return 0
	}
	frac, exp := math.Frexp(maxAbs) // maxAbs = frac * 2^exp, 0.5 <= frac < 1
	if frac == 0.5 {
		exp--
	}
	return Magnitude(exp)
}

// Wall is the condition on one side of a mesh.
type Wall uint8

// The conditions. Their values are part of the wire format.
const (
	Dirichlet Wall = iota // the row or column of the wall keeps its initial values
	Periodic              // the mesh goes on at the opposite wall, which is periodic too
	// Neumann gives the outward normal derivative. The row or column of the wall is swept: the value beyond the wall
	// is that of the mirror point, and the derivative is part of the source (see Operator).
	Neumann
)

// Walls are the conditions on all sides of a mesh. The zero Walls are all fixed. At a corner a fixed wall counts.
type Walls struct{ Left, Right, Top, Bottom Wall }

// WrapRows returns walls with periodic top and bottom if on is set, and fixed ones otherwise. Left and right are fixed.
func WrapRows(on bool) Walls {
	if !on {
		return Walls{}
	}
	return Walls{Top: Periodic, Bottom: Periodic}
}

// PeriodicRows reports whether top and bottom are periodic.
func (m Mesh) PeriodicRows() bool { return m.Walls.Top == Periodic }

// PeriodicColumns reports whether left and right are periodic.
func (m Mesh) PeriodicColumns() bool { return m.Walls.Left == Periodic }

// Interior returns the rows that a sweep updates: all but those of fixed walls, and but the copies of periodic ones.
func (m Mesh) Interior() Stripe {
	return Stripe{first(m.Walls.Top), m.NY - first(m.Walls.Bottom)}
}

// InteriorColumns returns the first column that a sweep updates, and the column after the last one.
func (m Mesh) InteriorColumns() (lo, hi int) { return first(m.Walls.Left), m.NX - first(m.Walls.Right) }

// first returns how many rows or columns lie between the end of the mesh and the first one that a sweep updates.
func first(w Wall) int {
	if w == Neumann {
		return 0
	}
	return 1
}

// FloorDiv returns the largest integer not above a/b, for b > 0.
func FloorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Intervals returns the number of intervals between n points in a direction that begins with the given wall. With
// periodic walls it is also the number of points that a sweep updates.
func Intervals(n int, w Wall) int {
	if w == Periodic {
		return n - 2
	}
	return n - 1
}
