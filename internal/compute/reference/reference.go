// Package reference is what tests compare sweeps and cycles with: the iteration over the whole mesh in its simplest
// form, with the norm computed by its definition. It shares no code with any backend but, in cycles, the solution of
// the coarsest level.
package reference

import (
	"encoding/binary"
	"fmt"
	"math"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Jacobi is a whole mesh in memory.
type Jacobi struct {
	arithmetic
	mesh solver.Mesh
	op   solver.Operator
	e    solver.Magnitude
	// field holds every value as float64. In a float32 mesh all values are float32 values, and each operation is
	// rounded to float32.
	field, next []float64
	source      []float64   // b of every point
	weights     [][]float64 // of every point, from solver.West on; none unless the operator is weighted
	fixed       []bool      // the fixed points of the operator
}

// New loads the initial field and the operator.
func New(mesh solver.Mesh, op solver.Operator, rows solver.RowSource, e solver.Magnitude) (*Jacobi, error) {
	n := mesh.NX * mesh.NY
	j := &Jacobi{arithmetic: arithmetic(mesh.DType), mesh: mesh, op: op, e: e,
		field: make([]float64, n), source: make([]float64, n), fixed: make([]bool, n)}
	for k := 1; k < op.ValuesPerPoint(); k++ {
		j.weights = append(j.weights, make([]float64, n))
	}
	for y := range mesh.NY {
		if err := j.load(y, rows); err != nil {
			return nil, fmt.Errorf("reference: row %d: %w", y, err)
		}
	}
	j.next = append([]float64(nil), j.field...)
	j.copyPeriodic(j.field)
	return j, nil
}

// load reads row y of the field, of the values of points and of the fixed points.
func (j *Jacobi) load(y int, rows solver.RowSource) error {
	nx := j.mesh.NX
	at, row := y*nx, make([]byte, j.mesh.RowBytes())
	if err := rows.Row(y, row); err != nil {
		return err
	}
	j.mesh.DType.Decode(j.field[at:at+nx], row)
	for k := range j.op.ValuesPerPoint() {
		if err := j.op.Values.ValueRow(y, solver.Value(k), row); err != nil {
			return fmt.Errorf("%v: %w", solver.Value(k), err)
		}
		values := j.source
		if k > 0 {
			values = j.weights[k-1]
		}
		j.mesh.DType.Decode(values[at:at+nx], row)
	}
	if j.op.Fixed != nil {
		if err := j.op.Fixed.FixedRow(y, j.fixed[at:at+nx]); err != nil {
			return fmt.Errorf("fixed points: %w", err)
		}
	}
	return nil
}

// Sweep does one sweep and returns the sum of squares of its updates.
func (j *Jacobi) Sweep() solver.Sum {
	nx := j.mesh.NX
	eachRow(j.mesh.NY, func(y int) {
		for x := range nx {
			if j.swept(y, x) {
				j.next[y*nx+x] = j.updated(y, x)
			}
		}
	})
	sum := j.sum()
	j.field, j.next = j.next, j.field
	j.copyPeriodic(j.field)
	return sum
}

// updated returns the new value of a point.
func (j *Jacobi) updated(y, x int) float64 {
	nx, f := j.mesh.NX, j.field
	west, east := beside(x, nx)
	north, south := beside(y, j.mesh.NY)
	v := values{solver.Source: j.source[y*nx+x]}
	for k, w := range j.weights {
		v[k+1] = w[y*nx+x]
	}
	return j.update(j.op, f[y*nx+west], f[y*nx+east], f[north*nx+x], f[south*nx+x], v)
}

// eachRow calls do for rows 0 to n-1, which do not depend on each other, on all cores.
func eachRow(n int, do func(y int)) {
	_ = parallel.Each(n, func(y int) error { // never fails
		do(y)
		return nil
	})
}

// swept reports whether a sweep updates a point.
func (j *Jacobi) swept(y, x int) bool { return j.interior(y, x) && !j.fixed[y*j.mesh.NX+x] }

// interior reports whether a point is in the interior of the mesh.
func (j *Jacobi) interior(y, x int) bool {
	lo, hi := j.mesh.InteriorColumns()
	rows := j.mesh.Interior()
	return x >= lo && x < hi && y >= rows.Lo && y < rows.Hi
}

// beside returns the neighbours of place i of n in one direction. At the ends, which only a Neumann wall sweeps, the
// one beyond the wall is the mirror point.
func beside(i, n int) (before, after int) {
	before, after = i-1, i+1
	if i == 0 {
		before = after
	}
	if i == n-1 {
		after = before
	}
	return before, after
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
	b := make([]byte, 0, s.Rows()*j.mesh.RowBytes())
	for _, v := range j.field[s.Lo*j.mesh.NX : s.Hi*j.mesh.NX] {
		if j.mesh.DType == solver.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

// sum returns the sum of squares of next - field.
func (j *Jacobi) sum() solver.Sum {
	nx, d := j.mesh.NX, make([]float64, len(j.field))
	eachRow(j.mesh.NY, func(y int) {
		for x := range nx {
			if j.swept(y, x) {
				d[y*nx+x] = j.round(j.next[y*nx+x] - j.field[y*nx+x])
			}
		}
	})
	return j.sumOf(d)
}

// sumOf returns the sum of squares of d, which is 0 at all points that a sweep does not update.
func (j *Jacobi) sumOf(d []float64) solver.Sum {
	sums := make([]solver.Sum, (j.mesh.NY+solver.GroupRows-1)/solver.GroupRows)
	eachRow(len(sums), func(i int) {
		for x := 0; x < j.mesh.NX; x += solver.GroupCols {
			sums[i].Add(j.group(d, i*solver.GroupRows, x), j.e)
		}
	})
	var sum solver.Sum
	for _, s := range sums {
		sum.Merge(s)
	}
	return sum
}

// group adds the squares of the group whose first row and column are y0 and x0. Each pair of squares is added to the
// smallest normal number; the sum of these numbers is subtracted at the end.
func (j *Jacobi) group(updates []float64, y0, x0 int) float64 {
	smallest := 0x1p-1022
	if j.mesh.DType == solver.Float32 {
		smallest = 0x1p-126
	}
	acc, bias := 0.0, 0.0
	rows := j.mesh.Interior()
	for y := max(rows.Lo, y0); y < min(rows.Hi, y0+solver.GroupRows); y++ {
		var d [solver.GroupCols]float64
		for c := range d {
			if x := x0 + c; x < j.mesh.NX {
				d[c] = updates[y*j.mesh.NX+x]
			}
		}
		left := j.fma(d[1], d[1], j.fma(d[0], d[0], smallest))
		right := j.fma(d[3], d[3], j.fma(d[2], d[2], smallest))
		acc = j.round(acc + j.round(left+right))
		bias += 2 * smallest
	}
	return acc - bias
}

// copyPeriodic makes column 0 of every row that is swept the copy of column NX-2, and column NX-1 that of column 1,
// where left and right are periodic. Then it does the same with rows where top and bottom are, except in the columns of
// fixed walls.
func (j *Jacobi) copyPeriodic(f []float64) {
	nx, ny, rows := j.mesh.NX, j.mesh.NY, j.mesh.Interior()
	if j.mesh.PeriodicColumns() {
		for y := rows.Lo; y < rows.Hi; y++ {
			f[y*nx], f[y*nx+nx-1] = f[y*nx+nx-2], f[y*nx+1]
		}
	}
	if !j.mesh.PeriodicRows() {
		return
	}
	for x := range nx {
		if x == 0 && j.mesh.Walls.Left == solver.Dirichlet || x == nx-1 && j.mesh.Walls.Right == solver.Dirichlet {
			continue
		}
		f[x], f[(ny-1)*nx+x] = f[(ny-2)*nx+x], f[nx+x]
	}
}
