package oracle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"jacobi/internal/compute/elementary"
	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// term is an expression of a run file, and its value at a point.
type term struct {
	text string
	at   func(ix, iy int) float64
}

func (t term) String() string { return t.text }

// zero is the term of nothing.
func zero() term { return term{"0", func(int, int) float64 { return 0 }} }

// random is a random problem and the keys that describe it.
type random struct {
	oracle.Problem
	keys []string
	*rand.Rand
	scale float64 // of all values
}

// newRandom returns the problem of a seed.
func newRandom(seed uint64) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 1))}
	m, powers := &r.Mesh, 30
	m.NX, m.NY, m.DType = r.size(), r.size(), solver.Float64
	if r.chance(0.12) {
		m.DType, powers = solver.Float32, 8
	}
	r.scale = 1
	if r.chance(0.3) {
		r.scale = math.Pow(10, float64(r.IntN(2*powers+1)-powers))
	}
	r.sides()
	r.Width, r.Height = 1, float64(solver.Intervals(m.NY, m.Walls.Top))/float64(solver.Intervals(m.NX, m.Walls.Left))
	if r.chance(0.5) {
		r.Height *= math.Exp((2*r.Float64() - 1) * math.Log(50))
	}
	r.set("grid.nx", "%d", m.NX)
	r.set("grid.ny", "%d", m.NY)
	r.set("grid.width", "%.17g", r.Width)
	r.set("grid.height", "%.17g", r.Height)
	source := r.term(r.scale * []float64{1, 30}[r.IntN(2)])
	r.Source = r.field(source)
	r.set("problem.source", "%s", source)
	initial := zero()
	if r.chance(0.4) {
		initial = r.wave(r.scale)
	}
	r.Initial = r.field(initial)
	r.set("problem.initial", "%s", initial)
	r.fix()
	r.screen()
	return r
}

func (r *random) set(key, format string, args ...any) {
	r.keys = append(r.keys, key+"="+fmt.Sprintf(format, args...))
}

func (r *random) chance(p float64) bool { return r.Float64() < p }

// size returns a number of points, more often a small one.
func (r *random) size() int {
	if r.chance(0.1) {
		return 3 + r.IntN(6)
	}
	return 9 + int(112*math.Pow(r.Float64(), 2))
}

// String names the problem by its keys.
func (r *random) String() string { return strings.Join(r.keys, "  ") }

// sides chooses walls. The values of fixed ones belong to the initial field; those of later sides count at corners.
func (r *random) sides() {
	w := &r.Mesh.Walls
	pair := func(before, after *solver.Wall) {
		if r.chance(0.2) {
			*before, *after = solver.Periodic, solver.Periodic
			return
		}
		for _, side := range []*solver.Wall{before, after} {
			if r.chance(0.4) {
				*side = solver.Neumann
			}
		}
	}
	pair(&w.Left, &w.Right)
	pair(&w.Top, &w.Bottom)
}

// texts sets the keys of the sides, with their values in the initial field and their slopes.
func (r *random) texts() {
	m := r.Mesh
	for i, side := range []struct {
		name string
		wall solver.Wall
	}{{"left", m.Walls.Left}, {"right", m.Walls.Right}, {"top", m.Walls.Top}, {"bottom", m.Walls.Bottom}} {
		points := m.NY
		at := func(k int) (ix, iy int) { return (i & 1) * (m.NX - 1), k }
		if i >= 2 {
			points = m.NX
			at = func(k int) (ix, iy int) { return k, (i & 1) * (m.NY - 1) }
		}
		if side.wall == solver.Periodic {
			r.set("problem."+side.name, "periodic")
			continue
		}
		t := zero()
		if r.chance(0.5) {
			t = r.wave(r.scale)
		}
		values := make([]float64, points)
		for k := range points {
			values[k] = t.at(at(k))
		}
		if side.wall == solver.Neumann {
			r.Slopes[i] = values
			r.set("problem."+side.name, "neumann(%s)", t)
			continue
		}
		r.set("problem."+side.name, "%s", t)
		for k, v := range values {
			ix, iy := at(k)
			r.Initial[iy*m.NX+ix] = v
		}
	}
}

// term returns a random term of about the given size.
func (r *random) term(size float64) term {
	switch r.IntN(5) {
	case 0:
		return zero()
	case 1:
		return term{fmt.Sprintf("%.17g", size), func(int, int) float64 { return size }}
	case 2:
		x, y, small := r.IntN(r.Mesh.NX), r.IntN(r.Mesh.NY), size*1e-3
		return term{fmt.Sprintf("ix == %d and iy == %d ? %.17g : %.17g", x, y, size, small),
			func(ix, iy int) float64 {
				if ix == x && iy == y {
					return size
				}
				return small
			}}
	}
	return r.wave(size)
}

// wave returns a term that oscillates.
func (r *random) wave(size float64) term {
	kx, ky := float64(r.IntN(8))*3/float64(r.Mesh.NX), float64(r.IntN(8))*3/float64(r.Mesh.NY)
	if r.chance(0.2) {
		kx, ky = 3*r.Float64(), 3*r.Float64()
	}
	phase := 6 * r.Float64()
	return term{fmt.Sprintf("%.17g * sin(%.17g * ix + %.17g * iy + %.17g)", size, kx, ky, phase),
		func(ix, iy int) float64 {
			return size * elementary.Sin(float64(float64(kx*float64(ix))+float64(ky*float64(iy)))+phase)
		}}
}

// field returns the values of a term at all points.
func (r *random) field(t term) []float64 {
	f := make([]float64, r.Mesh.NX*r.Mesh.NY)
	for i := range f {
		f[i] = t.at(i%r.Mesh.NX, i/r.Mesh.NX)
	}
	return f
}

// fix fixes points inside: one, several, or a bar.
func (r *random) fix() {
	m := r.Mesh
	r.texts()
	if m.NX < 6 || m.NY < 6 || r.chance(0.6) {
		return
	}
	x, y := 2+r.IntN(m.NX-4), 2+r.IntN(m.NY-4)
	text, on := fmt.Sprintf("ix == %d and iy == %d", x, y), func(ix, iy int) bool { return ix == x && iy == y }
	switch r.IntN(3) {
	case 1:
		far := x + 1 + r.IntN(m.NX-2-x)
		text = fmt.Sprintf("iy == %d and ix >= %d and ix <= %d", y, x, far)
		on = func(ix, iy int) bool { return iy == y && ix >= x && ix <= far }
	case 2:
		n := 3 + r.IntN(200)
		text = fmt.Sprintf("ix > 0 and ix < %d and iy > 0 and iy < %d and (ix == %d and iy == %d or "+
			"mod(ix * 31 + iy * 17, %d) == 0)", m.NX-1, m.NY-1, x, y, n)
		on = func(ix, iy int) bool {
			return ix > 0 && ix < m.NX-1 && iy > 0 && iy < m.NY-1 && (ix == x && iy == y || (ix*31+iy*17)%n == 0)
		}
	}
	r.set("problem.fixed", "%s", text)
	r.Fixed = make([]bool, m.NX*m.NY)
	for i := range r.Fixed {
		r.Fixed[i] = on(i%m.NX, i/m.NX)
	}
}

// grounded reports whether a wall or a point fixes the constant.
func (r *random) grounded() bool {
	w := r.Mesh.Walls
	return r.Fixed != nil || w.Left == solver.Dirichlet || w.Right == solver.Dirichlet || w.Top == solver.Dirichlet ||
		w.Bottom == solver.Dirichlet
}

// screen chooses k2, which a problem whose constant nothing else determines needs.
func (r *random) screen() {
	switch {
	case !r.grounded():
		r.Screening = math.Pow(10, r.Float64()*7-3)
	case r.chance(0.25):
		r.Screening = math.Pow(10, r.Float64()*10-4)
	default:
		return
	}
	r.set("problem.screening", "%.17g", r.Screening)
}
