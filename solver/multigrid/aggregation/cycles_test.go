package aggregation

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"jacobi/solver"
)

// finest is the equations of the points of a mesh, with a cycle: four sweeps, the correction of the levels, and four.
type finest struct {
	*problem
	solver   *Solver
	set      []int32 // by point: its unknown of level 1, or -1
	b, x     []float64
	diagonal []float64
}

func newFinest(p *problem, part *Part, l *Levels, threads int) *finest {
	n := p.mesh.NX * p.mesh.NY
	f := &finest{problem: p, solver: l.NewSolver(threads), b: make([]float64, l.Unknowns()),
		x: make([]float64, l.Unknowns()), set: filled(nil, n), diagonal: make([]float64, n)}
	in := p.mesh.Interior()
	for y := in.Lo; y < in.Hi; y++ {
		for x, set := range part.Sets(y) {
			if set >= 0 {
				f.set[y*p.mesh.NX+x] = l.First[part.tiling.TileRow(y)] + set
				f.diagonal[y*p.mesh.NX+x] = p.rows[y].Diagonal[x]
			}
		}
	}
	return f
}

// residual sets r to b - A u, with 0 beside the unknowns.
func (f *finest) residual(r, b, u []float64) {
	m := f.mesh
	in := m.Interior()
	lo, hi := m.InteriorColumns()
	at := func(x, y int) (int, bool) {
		if m.PeriodicColumns() {
			x = lo + (x-lo+hi-lo)%(hi-lo)
		}
		y, ok := m.Canonical(y)
		i := y*m.NX + x
		return i, ok && x >= 0 && x < m.NX && f.diagonal[i] > 0
	}
	for y := in.Lo; y < in.Hi; y++ {
		for x := lo; x < hi; x++ {
			i := y*m.NX + x
			if r[i] = 0; f.diagonal[i] == 0 {
				continue
			}
			sum := b[i] - f.diagonal[i]*u[i]
			add := func(x, y int, face float64) {
				if j, ok := at(x, y); ok {
					sum += face * u[j]
				}
			}
			above, _ := m.Canonical(y - 1)
			add(x, y-1, f.rows[max(above, 0)].South[x])
			add(x-1, y, f.rows[y].East[max(x-1, 0)])
			add(x+1, y, f.rows[y].East[x])
			add(x, y+1, f.rows[y].South[x])
			r[i] = sum
		}
	}
}

// precondition returns the result of a cycle for b.
func (f *finest) precondition(t testing.TB, b []float64) []float64 {
	u, r := make([]float64, len(b)), make([]float64, len(b))
	sweep := func(w float64) {
		f.residual(r, b, u)
		for i, d := range f.diagonal {
			if d > 0 {
				u[i] += w * r[i] / d
			}
		}
	}
	all := [4]float64{4.2743160852065145, 1.2101383127306031, 0.6666666666666667, 0.5155456020628817}
	for _, w := range all {
		sweep(w)
	}
	f.residual(r, b, u)
	clear(f.b)
	for i, set := range f.set {
		if set >= 0 {
			f.b[set] += r[i]
		}
	}
	if err := f.solver.Solve(context.Background(), f.x, f.b); err != nil {
		t.Fatal(err)
	}
	for i, set := range f.set {
		if set >= 0 {
			u[i] += f.x[set]
		}
	}
	for i := range all {
		sweep(all[len(all)-1-i])
	}
	return u
}

// solve solves for b by conjugate gradients and returns the cycles that make the norm of D^-1 r 1e-8 of the first one.
func (f *finest) solve(t testing.TB, b []float64) (u []float64, cycles int) {
	u, r := make([]float64, len(b)), slices.Clone(b)
	p, q := make([]float64, len(b)), make([]float64, len(b))
	sum := func(a, b []float64) (s float64) {
		for i := range a {
			s += a[i] * b[i]
		}
		return s
	}
	norm := func() (s float64) {
		for i, d := range f.diagonal {
			if d > 0 {
				s += r[i] / d * (r[i] / d)
			}
		}
		return math.Sqrt(s)
	}
	first, last, zero := norm(), slices.Clone(r), make([]float64, len(b))
	before := 1.0
	for cycles = 1; cycles < 100; cycles++ {
		z := f.precondition(t, r)
		now := sum(z, r)
		beta := (now - sum(z, last)) / before
		if cycles == 1 {
			beta = 0
		}
		before = now
		for i := range p {
			p[i] = z[i] + beta*p[i]
		}
		f.residual(q, zero, p)
		alpha := -sum(p, r) / sum(p, q)
		copy(last, r)
		for i := range u {
			u[i] += alpha * p[i]
			r[i] += alpha * q[i]
		}
		if norm() <= 1e-8*first {
			break
		}
	}
	return u, cycles
}

// source returns a right-hand side: 1 times the part of each point, or random numbers that add up to 0.
func (f *finest) source(loose bool) []float64 {
	b := make([]float64, len(f.diagonal))
	r := rand.New(rand.NewPCG(3, 4))
	sum, n := 0.0, 0
	for i, d := range f.diagonal {
		if d > 0 {
			b[i] = 1
			if loose {
				b[i] = r.Float64() - 0.5
			}
			sum += b[i]
			n++
		}
	}
	for i, d := range f.diagonal {
		if loose && d > 0 {
			b[i] -= sum / float64(n)
		}
	}
	return b
}

// loose reports whether nothing determines the constant of a solution.
func (c class) loose() bool {
	w := c.walls
	return c.screening == 0 && w.Left != solver.Dirichlet && w.Top != solver.Dirichlet
}

// setUp returns the finest level of a class on n x n points, for one rank.
func (c class) setUp(t testing.TB, n, threads int) *finest {
	p := c.of(n)
	parts := p.parts(t, threads)
	return newFinest(p, parts[0], p.levels(t, threads, parts), threads)
}

// cyclesOf is the numbers of cycles on 33 x 33 and 65 x 65 points, for contrasts of 1e4, 1e6 and 1e8.
var cyclesOf = map[string][3][2]int{
	"smooth":                   {{11, 12}, {11, 12}, {11, 12}},
	"layers of 5":              {{11, 13}, {11, 13}, {11, 13}},
	"layers of 1":              {{9, 11}, {8, 9}, {7, 8}},
	"channels":                 {{9, 10}, {8, 10}, {8, 10}},
	"barriers":                 {{9, 10}, {7, 9}, {7, 7}},
	"spiral":                   {{11, 11}, {10, 11}, {9, 9}},
	"spiral barrier":           {{11, 13}, {10, 11}, {9, 11}},
	"random points":            {{13, 16}, {12, 16}, {12, 16}},
	"checkerboard of 3":        {{13, 15}, {13, 15}, {11, 13}},
	"percolation, weak points": {{12, 16}, {12, 16}, {11, 14}},
	"percolation, islands":     {{13, 17}, {13, 17}, {13, 17}},
	"holes":                    {{12, 15}, {12, 15}, {12, 15}},
	"comb":                     {{13, 16}, {13, 16}, {13, 16}},
	"maze":                     {{13, 15}, {13, 15}, {13, 15}},
	"fixed points":             {{9, 10}, {8, 9}, {7, 8}},
	"wide cells":               {{18, 23}, {18, 23}, {18, 23}},
	"high cells":               {{18, 23}, {18, 23}, {18, 23}},
	"periodic":                 {{12, 14}, {12, 13}, {12, 13}},
	"periodic rows":            {{12, 15}, {12, 15}, {12, 14}},
	"loose":                    {{13, 15}, {13, 14}, {12, 14}},
	"loose ring":               {{12, 14}, {12, 13}, {12, 12}},
}

// The numbers of cycles do not grow with the contrast, and hardly with the mesh.
func TestCycles(t *testing.T) {
	for k, contrast := range []float64{1e4, 1e6, 1e8} {
		if testing.Short() && k > 0 {
			break // the race detector is slow
		}
		for _, c := range classes(contrast) {
			for i, n := range []int{33, 65} {
				f := c.setUp(t, n, 2)
				cycles, rest := f.check(t, c.loose())
				if want := cyclesOf[c.name][k][i]; cycles != want || !(rest <= 1e-6) {
					t.Errorf("%s, contrast %g, %d points: %d cycles, want %d, updates of %g times the first ones",
						c.name, contrast, n, cycles, want, rest)
				}
			}
		}
	}
}

// Meshes of a few points, where tiles are cut and a ring may be a single tile.
func TestFewPoints(t *testing.T) {
	for _, c := range classes(1e6) {
		switch c.name {
		case "maze", "spiral", "spiral barrier", "comb": // of more points
			continue
		}
		for n := 5; n < 14; n++ {
			f := c.setUp(t, n, 1)
			if cycles, rest := f.check(t, c.loose()); cycles > 14 || !(rest <= 1e-6) {
				t.Errorf("%s, %d points: %d cycles, updates of %g times the first ones", c.name, n, cycles, rest)
			}
		}
	}
}

// check solves for a source. It returns the number of cycles and the largest update of a point by that of the source.
func (f *finest) check(t testing.TB, loose bool) (cycles int, rest float64) {
	b := f.source(loose)
	u, cycles := f.solve(t, b)
	r := make([]float64, len(b))
	f.residual(r, b, u)
	most, largest := 0.0, 0.0
	for i, d := range f.diagonal {
		if d > 0 {
			most, largest = max(most, math.Abs(r[i]/d)), max(largest, math.Abs(b[i]/d))
		}
	}
	return cycles, most / largest
}
