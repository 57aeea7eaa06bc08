package aggregation

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/solver"
)

// problem is the equations of a mesh.
type problem struct {
	mesh  solver.Mesh
	ratio float64
	rows  []Row // by row of the mesh
}

// class is a problem by the coefficients of its points.
type class struct {
	name      string
	walls     solver.Walls
	ratio     float64                                          // 0 for 1
	a         func(n int, r *rand.Rand) func(x, y int) float64 // 0 in a hole
	fixed     func(x, y int) bool
	screening float64
	leaks     func(x, y int) bool // points with a screening 1000 times as large as faces of coefficient 1
}

const (
	neumann  = solver.Neumann
	periodic = solver.Periodic
)

// flow is the walls of a flow from the left to the right.
var flow = solver.Walls{Top: neumann, Bottom: neumann}

// classes returns the problems that are hard for other levels, with a contrast.
func classes(contrast float64) []class {
	either := func(high func(x, y int) bool) func(int, *rand.Rand) func(x, y int) float64 {
		return func(int, *rand.Rand) func(x, y int) float64 {
			return func(x, y int) float64 {
				if high(x, y) {
					return contrast
				}
				return 1
			}
		}
	}
	random := func(share, other float64) func(int, *rand.Rand) func(x, y int) float64 {
		return func(n int, r *rand.Rand) func(x, y int) float64 {
			return marked(n, func(int, int) bool { return r.Float64() < share }, other, 1)
		}
	}
	list := []class{
		{name: "smooth", a: func(n int, _ *rand.Rand) func(x, y int) float64 {
			return func(x, y int) float64 {
				u, v := float64(x)/float64(n-1), float64(y)/float64(n-1)
				return 1 + 0.9*math.Sin(6*math.Pi*u)*math.Sin(4*math.Pi*v)
			}
		}},
		{name: "layers of 5", walls: flow, a: either(func(x, _ int) bool { return x/5%2 == 1 })},
		{name: "layers of 1", walls: flow, a: either(func(x, _ int) bool { return x%2 == 1 })},
		{name: "channels", a: either(func(x, _ int) bool { return x%9 == 4 })},
		{name: "barriers", walls: flow, a: either(func(x, _ int) bool { return x%9 != 4 })},
		{name: "spiral", a: func(n int, _ *rand.Rand) func(x, y int) float64 { return spiral(n, contrast, 1) }},
		{name: "spiral barrier", a: func(n int, _ *rand.Rand) func(x, y int) float64 { return spiral(n, 1, contrast) }},
		{name: "random points", a: random(0.5, contrast)},
		{name: "checkerboard of 3", walls: flow, a: either(func(x, y int) bool { return (x/3+y/3)%2 == 1 })},
		{name: "percolation, weak points", a: random(0.38, 1/contrast)},
		{name: "percolation, islands", a: random(0.38, 0), screening: 1e-3},
		{name: "holes", a: random(0.3, 0)},
		{name: "comb", walls: flow, a: func(n int, _ *rand.Rand) func(x, y int) float64 {
			return func(x, y int) float64 {
				if x%8 == 3 && y > 4 || x%8 == 7 && y < n-5 {
					return 0
				}
				return 1
			}
		}},
		{name: "maze", walls: solver.Walls{Left: neumann, Right: neumann}, a: maze},
		{name: "fixed points", a: either(func(x, y int) bool { return x%3 == 0 }),
			fixed: func(x, y int) bool { return (7*x+11*y)%23 == 0 }},
		{name: "wide cells", ratio: 1e4, a: random(0.5, 100)},
		{name: "high cells", ratio: 1e-4, a: random(0.5, 100)},
		{name: "periodic", walls: solver.Walls{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic},
			a: random(0.5, contrast), screening: 1e-4},
		{name: "periodic rows", walls: solver.Walls{Top: periodic, Bottom: periodic}, ratio: 9,
			a: random(0.5, contrast)},
		{name: "loose", walls: solver.Walls{Left: neumann, Right: neumann, Top: neumann, Bottom: neumann},
			a: random(0.5, contrast)},
		{name: "loose ring", walls: solver.Walls{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic},
			a: random(0.5, contrast)},
	}
	return list
}

func marked(n int, at func(x, y int) bool, yes, no float64) func(x, y int) float64 {
	a := make([]float64, n*n)
	for i := range a {
		if a[i] = no; at(i%n, i/n) {
			a[i] = yes
		}
	}
	return func(x, y int) float64 { return a[y*n+x] }
}

// spiral returns a coefficient of high along a line one point wide that winds inward.
func spiral(n int, high, low float64) func(x, y int) float64 {
	on := make([]bool, n*n)
	line := func(x0, y0, x1, y1 int) {
		for y := y0; y <= y1; y++ {
			for x := x0; x <= x1; x++ {
				on[y*n+x] = true
			}
		}
	}
	const step = 4
	for x0, y0, x1, y1 := 2, 2, n-3, n-3; x1-x0 > 4 && y1-y0 > 4; x0, y0, x1, y1 = x0+step, y0+step, x1-step, y1-step {
		begin := x0
		if x0 > 2 {
			begin = x0 - step
		}
		line(begin, y0, x1, y0)
		line(x1, y0, x1, y1)
		line(x0, y1, x1, y1)
		line(x0, y0+step, x0, y1)
	}
	return marked(n, func(x, y int) bool { return on[y*n+x] }, high, low)
}

// maze returns channels of three points between walls of one, with one way from each place to each other one.
func maze(n int, r *rand.Rand) func(x, y int) float64 {
	const cell = 4
	m := (n - 1) / cell
	a := marked(n, func(x, y int) bool { return x%cell == 0 || y%cell == 0 }, 0, 1)
	open := map[[2]int]bool{}
	dig := func(x0, y0, x1, y1 int) {
		for y := y0; y <= y1; y++ {
			for x := x0; x <= x1; x++ {
				open[[2]int{x, y}] = true
			}
		}
	}
	seen, stack := map[[2]int]bool{{}: true}, [][2]int{{}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		var ways [][2]int
		for _, d := range [][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			to := [2]int{at[0] + d[0], at[1] + d[1]}
			if min(to[0], to[1]) >= 0 && max(to[0], to[1]) < m && !seen[to] {
				ways = append(ways, to)
			}
		}
		if len(ways) == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		to := ways[r.IntN(len(ways))]
		x, y := max(at[0], to[0])*cell, max(at[1], to[1])*cell
		if at[0] != to[0] {
			dig(x, at[1]*cell+1, x, at[1]*cell+cell-1)
		} else {
			dig(at[0]*cell+1, y, at[0]*cell+cell-1, y)
		}
		seen[to] = true
		stack = append(stack, to)
	}
	dig(1, 0, cell-1, 0)
	dig((m-1)*cell+1, m*cell, m*cell-1, n-1)
	return func(x, y int) float64 {
		if open[[2]int{x, y}] {
			return 1
		}
		return a(x, y)
	}
}

// of returns the problem of a class on n x n points.
func (c class) of(n int) *problem {
	p := &problem{mesh: solver.Mesh{NX: n, NY: n, DType: solver.Float64, Walls: c.walls}, ratio: max(c.ratio, 0)}
	if c.ratio == 0 {
		p.ratio = 1
	}
	coefficient := c.a(n, rand.New(rand.NewPCG(1, 2)))
	wrap := func(x, y int) (int, int, bool) {
		if p.mesh.PeriodicColumns() {
			x = 1 + (x-1+n-2)%(n-2)
		}
		y, ok := p.mesh.Canonical(y)
		return x, y, ok && x >= 0 && x < n
	}
	half := func(at int, low, high solver.Wall) float64 {
		if at == 0 && low == neumann || at == n-1 && high == neumann {
			return 0.5
		}
		return 1
	}
	w := c.walls
	face := func(x, y, dx, dy int) float64 {
		x0, y0, ok := wrap(x, y)
		x1, y1, ok1 := wrap(x+dx, y+dy)
		if !ok || !ok1 {
			return 0
		}
		a, b := coefficient(x0, y0), coefficient(x1, y1)
		if a == 0 || b == 0 {
			return 0
		}
		f := 2 * a * b / (a + b)
		if dy != 0 {
			return f * p.ratio * half(x, w.Left, w.Right)
		}
		return f * half(y, w.Top, w.Bottom)
	}
	interior, most := p.mesh.Interior(), 0.0
	lo, hi := p.mesh.InteriorColumns()
	for y := range n {
		r := Row{make([]float64, n), make([]float64, n), make([]float64, n)}
		for x := range n {
			r.East[x], r.South[x] = face(x, y, 1, 0), face(x, y, 0, 1)
			wx, wy, _ := wrap(x, y)
			if wx < lo || wx >= hi || wy < interior.Lo || wy >= interior.Hi || c.fixed != nil && c.fixed(wx, wy) {
				continue
			}
			r.Diagonal[x] = (face(x, y, -1, 0) + r.East[x]) + (face(x, y, 0, -1) + r.South[x])
			if r.Diagonal[x] > 0 {
				if c.leaks != nil && c.leaks(wx, wy) {
					r.Diagonal[x] += 1000
				}
				r.Diagonal[x] += c.screening * half(x, w.Left, w.Right) * half(y, w.Top, w.Bottom)
			}
			most = max(most, r.Diagonal[x])
		}
		p.rows = append(p.rows, r)
	}
	if c.screening == 0 {
		p.leaveOut()
	}
	_, exp := math.Frexp(most)
	for _, r := range p.rows {
		for _, v := range [][]float64{r.Diagonal, r.East, r.South} {
			for x := range v {
				v[x] = math.Ldexp(v[x], -exp)
			}
		}
	}
	return p
}

// leaveOut leaves out all points that hang together with fewer than half of the mesh's.
func (p *problem) leaveOut() {
	m := p.mesh
	seen := make([]bool, m.NX*m.NY)
	for i := range seen {
		stack, part := []int{i}, []int{}
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			y, x := i/m.NX, i%m.NX
			if seen[i] || !(p.rows[y].Diagonal[x] > 0) {
				continue
			}
			seen[i] = true
			part = append(part, i)
			if p.rows[y].East[x] > 0 && x+1 < m.NX {
				stack = append(stack, i+1)
			}
			if x > 0 && p.rows[y].East[x-1] > 0 {
				stack = append(stack, i-1)
			}
			if p.rows[y].South[x] > 0 && y+1 < m.NY {
				stack = append(stack, i+m.NX)
			}
			if y > 0 && p.rows[y-1].South[x] > 0 {
				stack = append(stack, i-m.NX)
			}
		}
		if 2*len(part) < m.NX*m.NY && len(part) < m.NX {
			for _, i := range part {
				p.rows[i/m.NX].Diagonal[i%m.NX] = 0
			}
		}
	}
}

// read is the function that Aggregate wants.
func (p *problem) read(y int, to Row) error {
	row, _ := p.mesh.Canonical(y)
	copy(to.Diagonal, p.rows[row].Diagonal)
	copy(to.East, p.rows[row].East)
	copy(to.South, p.rows[row].South)
	return nil
}

// parts returns the parts of ranks whose stripes end at the given rows and at the end of the mesh.
func (p *problem) parts(t testing.TB, threads int, ends ...int) (parts []*Part) {
	tiling, in := NewTiling(p.mesh, p.ratio), p.mesh.Interior()
	lo := in.Lo
	for _, hi := range append(ends, in.Hi) {
		own := solver.Stripe{Lo: lo, Hi: hi}
		covered := tiling.Covering(solver.Stripe{Lo: lo - 4, Hi: hi + 4})
		if len(ends) == 0 {
			covered = solver.Stripe{Hi: tiling.TileRows()}
		}
		part, err := tiling.Aggregate(context.Background(), p.read, covered, tiling.Owned(own), threads)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		lo = hi
	}
	return parts
}

// levels returns the levels of parts.
func (p *problem) levels(t testing.TB, threads int, parts []*Part) *Levels {
	var data [][]byte
	for _, part := range parts {
		data = append(data, part.Bytes())
	}
	l, err := New(NewTiling(p.mesh, p.ratio), data, threads)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
