package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"jacobi/solver"
)

// Update is the operator of a case. The zero Update is the plain average.
type Update struct {
	General  bool // unequal spacings and screening
	Source   bool // a source, besides equal or unequal spacings
	Weighted bool // weights of each point, and a source
	Fixed    bool // fixed points
}

// String names the parts that the plain average lacks.
func (u Update) String() string {
	var parts []string
	for _, p := range []struct {
		on   bool
		name string
	}{{u.General, "general"}, {u.Source, "source"}, {u.Weighted, "weighted"}, {u.Fixed, "fixed"}} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, "+")
}

// pattern is random values of points and random fixed points.
type pattern struct {
	mesh   solver.Mesh
	values [][][]byte // by value and row
	fixed  [][]bool
}

// maxSource bounds the source of a case.
const maxSource = 0.25

// newOperator returns the operator of a case.
func newOperator(c Case, seed uint64) solver.Operator {
	r := rand.New(rand.NewPCG(seed, 2))
	var op solver.Operator
	if c.General || c.Source {
		op.Scale, op.Blend = 0.5, 0.5
	}
	if c.General {
		rho, screening := math.Exp(4*r.Float64()-2), r.Float64()/8
		op.Scale, op.Blend = (1+rho)/(2*(1+rho)+screening), rho/(1+rho)
		if c.Mesh.DType == solver.Float32 {
			op.Scale, op.Blend = float64(float32(op.Scale)), float64(float32(op.Blend))
		}
	}
	op.Weighted = c.Weighted
	o := pattern{mesh: c.Mesh, values: make([][][]byte, 1)}
	if c.Weighted {
		o.values = make([][][]byte, op.ValuesPerPoint())
	}
	for iy := range c.Mesh.NY {
		o.addRow(iy, r)
	}
	if c.Source || c.Weighted {
		op.Values = o
	}
	if c.Fixed {
		o.fixed = fixedPoints(c.Mesh, r)
		op.Fixed = o
	}
	return op
}

// addRow adds row iy, of random values or those of the row before. Some rows have the source of the row before alone.
func (o *pattern) addRow(iy int, r *rand.Rand) {
	if again(iy) {
		for k, rows := range o.values {
			o.values[k] = append(rows, rows[iy-1])
		}
		return
	}
	rows := make([][]byte, len(o.values))
	for range o.mesh.NX {
		rows[solver.Source] = appendValue(rows[solver.Source], o.mesh.DType, maxSource*value(r))
	}
	for range o.mesh.NX {
		if len(rows) == 1 {
			break
		}
		for i, w := range weights(r) {
			k := int(solver.West) + i
			rows[k] = appendValue(rows[k], o.mesh.DType, w)
		}
	}
	if above := o.values[solver.Source]; len(rows) > 1 && iy%5 == 3 {
		rows[solver.Source] = above[iy-1]
	}
	for k, row := range rows {
		o.values[k] = append(o.values[k], row)
	}
}

// weights returns random weights of a point: at least 0, and the sum at most 1. Some are 0, some points have a single
// one, and some sums are 1.
func weights(r *rand.Rand) (w [4]float64) {
	sum := 0.0
	for i := range w {
		if w[i] = r.Float64(); r.IntN(6) == 0 {
			w[i] = 0
		}
		sum += w[i]
	}
	switch r.IntN(8) {
	case 0:
		w = [4]float64{}
		w[r.IntN(4)] = 1
		return w
	case 1:
		sum *= 1 + r.Float64() // less than 1, as with screening
	}
	for i := range w {
		w[i] = math.Floor(w[i]/max(sum, 1e-3)*(1<<20)) / (1 << 20) // a value of both types, rounded down
	}
	return w
}

// fixedPoints returns single points and rectangles. Copies of periodic rows and columns agree with what they copy.
func fixedPoints(m solver.Mesh, r *rand.Rand) [][]bool {
	fixed := make([][]bool, m.NY)
	for y := range fixed {
		fixed[y] = make([]bool, m.NX)
		for x := range fixed[y] {
			fixed[y][x] = r.IntN(8) == 0
		}
	}
	for range 3 {
		x, y := r.IntN(m.NX), r.IntN(m.NY)
		w, h := 1+r.IntN(1+m.NX/3), 1+r.IntN(1+m.NY/3)
		for j := y; j < min(y+h, m.NY); j++ {
			for i := x; i < min(x+w, m.NX); i++ {
				fixed[j][i] = true
			}
		}
	}
	if m.PeriodicColumns() {
		for _, row := range fixed {
			row[0], row[m.NX-1] = row[m.NX-2], row[1]
		}
	}
	if m.PeriodicRows() {
		copy(fixed[0], fixed[m.NY-2])
		copy(fixed[m.NY-1], fixed[1])
	}
	return fixed
}

// ValueRow implements solver.ValueRows.
func (o pattern) ValueRow(iy int, k solver.Value, dst []byte) error {
	if iy < 0 || iy >= o.mesh.NY || int(k) >= len(o.values) || len(dst) != o.mesh.RowBytes() {
		return fmt.Errorf("%v of row %d, %d bytes, asked for: the mesh has %d values and %d rows of %d bytes", k,
			iy, len(dst), len(o.values), o.mesh.NY, o.mesh.RowBytes())
	}
	copy(dst, o.values[k][iy])
	return nil
}

// ValueRepeats implements solver.ValueRepeater.
func (o pattern) ValueRepeats(iy int, _ solver.Value) bool { return again(iy) }

// FixedRow implements solver.FixedRows.
func (o pattern) FixedRow(iy int, dst []bool) error {
	if iy < 0 || iy >= o.mesh.NY || len(dst) != o.mesh.NX {
		return fmt.Errorf("fixed row %d of %d points asked for: the mesh has %d rows of %d points", iy, len(dst),
			o.mesh.NY, o.mesh.NX)
	}
	copy(dst, o.fixed[iy])
	return nil
}

// magnitude returns the exponent for the sums of an operator, given the largest absolute value of the field
// (docs/numerics.md).
func magnitude(op solver.Operator, largest float64) solver.Magnitude {
	if op.Plain() {
		return solver.MagnitudeOf(largest)
	}
	source := 0.0
	if op.Values != nil {
		source = maxSource
	}
	return solver.MagnitudeOf(largest+source) + 1
}
