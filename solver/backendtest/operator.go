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
	General bool // unequal spacings and screening
	Source  bool // a source, besides equal or unequal spacings
	Fixed   bool // fixed points
}

// String names the parts that the plain average lacks.
func (u Update) String() string {
	var parts []string
	for _, p := range []struct {
		on   bool
		name string
	}{{u.General, "general"}, {u.Source, "source"}, {u.Fixed, "fixed"}} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, "+")
}

// pattern is a random source and random fixed points.
type pattern struct {
	mesh   solver.Mesh
	source [][]byte
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
	o := pattern{mesh: c.Mesh}
	for range c.Mesh.NY {
		row := make([]byte, 0, c.Mesh.RowBytes())
		for range c.Mesh.NX {
			row = appendValue(row, c.Mesh.DType, maxSource*value(r))
		}
		o.source = append(o.source, row)
	}
	if c.Source {
		op.Source = o
	}
	if c.Fixed {
		o.fixed = fixedPoints(c.Mesh, r)
		op.Fixed = o
	}
	return op
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

// SourceRow implements solver.SourceRows.
func (o pattern) SourceRow(iy int, dst []byte) error {
	if iy < 0 || iy >= o.mesh.NY || len(dst) != o.mesh.RowBytes() {
		return fmt.Errorf("source row %d of %d bytes asked for: the mesh has %d rows of %d bytes", iy, len(dst),
			o.mesh.NY, o.mesh.RowBytes())
	}
	copy(dst, o.source[iy])
	return nil
}

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
	if op.Source != nil {
		source = maxSource
	}
	return solver.MagnitudeOf(largest+source) + 1
}

// OperatorCases returns the cases of all operators on all walls: each pair of walls of columns with each pair of walls
// of rows, each operator and both types. Widths, heights, ranks and depths vary from case to case, so that walls and
// fixed points fall on each place of a vector, a block and a group.
func OperatorCases() []Case {
	sides := [][2]solver.Wall{{solver.Dirichlet, solver.Dirichlet}, {solver.Neumann, solver.Dirichlet},
		{solver.Dirichlet, solver.Neumann}, {solver.Neumann, solver.Neumann}, {solver.Periodic, solver.Periodic}}
	updates := []Update{{}, {Fixed: true}, {General: true}, {Source: true}, {General: true, Source: true},
		{General: true, Fixed: true}, {General: true, Source: true, Fixed: true}}
	r := rand.New(rand.NewPCG(1, 3))
	widths := []int{3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 30, 31, 32, 33, 34, 47, 62, 63, 64, 65, 66, 67, 80, 96, 100,
		126, 127, 128, 129, 130, 160, 191, 192, 193, 256, 300}
	depths := []int{1, 2, 3, 4, 5, 8, 11}
	var cases []Case
	add := func(c Case) {
		interior := c.Mesh.Interior()
		for c.Ranks > 1 && solver.MaxRanks(interior, c.Depth) < c.Ranks {
			c.Ranks--
		}
		for c.Depth > 1 && solver.MaxRanks(interior, c.Depth) < c.Ranks {
			c.Depth--
		}
		c.Sweeps = min(c.Sweeps, c.Depth)
		cases = append(cases, c)
	}
	for _, columns := range sides {
		for _, ends := range sides {
			walls := solver.Walls{Left: columns[0], Right: columns[1], Top: ends[0], Bottom: ends[1]}
			for _, u := range updates {
				if u == (Update{}) && (walls == solver.Walls{} || walls == solver.WrapRows(true)) {
					continue // Cases has them
				}
				for _, t := range []solver.DType{solver.Float32, solver.Float64} {
					for range 2 {
						depth := depths[r.IntN(len(depths))]
						add(Case{Mesh: solver.Mesh{NX: widths[r.IntN(len(widths))], NY: 3 + r.IntN(60), DType: t,
							Walls: walls}, Update: u, Ranks: 1 + r.IntN(4), Depth: depth, Sweeps: 1 + r.IntN(depth),
							Passes: 2})
					}
				}
			}
		}
	}
	all := Update{General: true, Source: true, Fixed: true}
	neumann := solver.Walls{Left: solver.Neumann, Right: solver.Neumann, Top: solver.Neumann, Bottom: solver.Neumann}
	for _, t := range []solver.DType{solver.Float32, solver.Float64} {
		for _, walls := range []solver.Walls{{}, solver.WrapRows(true), neumann} {
			for _, u := range []Update{{Fixed: true}, all} {
				add(Case{Mesh: solver.Mesh{NX: 1100, NY: 90, DType: t, Walls: walls}, Update: u, Ranks: 2, Depth: 16,
					Passes: 2})
				add(Case{Mesh: solver.Mesh{NX: 1024, NY: 90, DType: t, Walls: walls}, Update: u, Ranks: 1, Depth: 32,
					Passes: 1})
			}
		}
	}
	return cases
}
