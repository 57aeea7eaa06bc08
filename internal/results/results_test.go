package results

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"jacobi/solver"
)

// world is a whole mesh with a field and fixed points; its Neumann walls have the derivative 1.5 + column - 3 row.
type world struct {
	mesh   solver.Mesh
	k2     float64
	values []float64
	fixed  []bool // nil without fixed points
}

const hx, hy = 0.5, 0.25

func (w world) Mesh() solver.Mesh               { return w.mesh }
func (w world) Spacings() (float64, float64)    { return hx, hy }
func (w world) Screening() float64              { return w.k2 }
func (w world) at(ix, iy int) float64           { return w.values[iy*w.mesh.NX+ix] }
func (w world) FixedRow(iy int, d []bool) error { copy(d, w.fixed[iy*w.mesh.NX:]); return nil }

func (w world) Operator() (o solver.Operator) {
	if w.fixed != nil {
		o.Fixed = w
	}
	return o
}

func (w world) Row(iy int, dst []byte) error {
	for ix := range w.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(w.at(ix, iy)))
	}
	return nil
}

func (w world) Derivative(_, iy, ix int) (float64, error) {
	return 1.5 + float64(ix) - 3*float64(iy), nil
}

// newWorld returns a random field. A tenth of the points or more are fixed if density is above 0.
func newWorld(r *rand.Rand, nx, ny int, walls solver.Walls, density float64) world {
	w := world{mesh: solver.Mesh{NX: nx, NY: ny, DType: solver.Float64, Walls: walls}, k2: 3,
		values: make([]float64, nx*ny)}
	if density > 0 {
		w.fixed = make([]bool, nx*ny)
	}
	for i := range w.values {
		w.values[i] = math.Round(1000*r.NormFloat64()) / 8
		if density > 0 {
			w.fixed[i] = r.Float64() < density
		}
	}
	copyPoint := func(to, from int) {
		w.values[to] = w.values[from]
		if w.fixed != nil {
			w.fixed[to] = w.fixed[from]
		}
	}
	for iy := range ny {
		if w.mesh.PeriodicColumns() {
			copyPoint(iy*nx, iy*nx+nx-2)
			copyPoint(iy*nx+nx-1, iy*nx+1)
		}
	}
	for ix := range nx {
		if w.mesh.PeriodicRows() {
			copyPoint(ix, (ny-2)*nx+ix)
			copyPoint((ny-1)*nx+ix, nx+ix)
		}
	}
	return w
}

// tally returns the results that so many ranks work out.
func tally(t *testing.T, w world, ranks int) Results {
	t.Helper()
	stripes, err := solver.Partition(w.mesh.Interior(), ranks, 1)
	if err != nil {
		t.Fatal(err)
	}
	row := func(iy int) []byte {
		b := make([]byte, w.mesh.RowBytes())
		if err := w.Row(iy, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	parts := make([]Part, ranks)
	for i, s := range stripes {
		a := New(w, s)
		for iy := range w.mesh.NY { // rows of others, too, which the tally ignores
			if err := a.AddRows(iy, row(iy)); err != nil {
				t.Fatal(err)
			}
		}
		var next []byte
		if i < ranks-1 || w.mesh.PeriodicRows() {
			next = row(stripes[(i+1)%ranks].Lo)
		}
		part, err := a.End(next)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &parts[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Merge(w, parts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// direct works the results out from their definitions, without ranks.
type direct struct {
	world
	owner  []string // of each point: a wall, "region N" by its first point, "" for a free one
	flux   map[string]float64
	energy float64
	mean   float64
}

func newDirect(w world) *direct {
	d := &direct{world: w, owner: make([]string, len(w.values)), flux: map[string]float64{}}
	m := w.mesh
	for iy := range m.NY {
		for ix := range m.NX {
			i := iy*m.NX + ix
			switch {
			case iy == 0 && m.Walls.Top == solver.Fixed:
				d.owner[i] = "top"
			case iy == m.NY-1 && m.Walls.Bottom == solver.Fixed:
				d.owner[i] = "bottom"
			case ix == 0 && m.Walls.Left == solver.Fixed:
				d.owner[i] = "left"
			case ix == m.NX-1 && m.Walls.Right == solver.Fixed:
				d.owner[i] = "right"
			case w.fixed != nil && w.fixed[i]:
				d.owner[i] = fmt.Sprintf("region %d", i)
			}
		}
	}
	d.spread()
	d.integrate()
	return d
}

// ring maps a place beyond a periodic end, or on a copy, to the place of which it is a copy.
func ring(i, n int, periodic bool) int {
	if periodic {
		return 1 + (i-1+n-2)%(n-2)
	}
	return i
}

// spread gives connected regions the name of their first point, until nothing changes.
func (d *direct) spread() {
	m := d.mesh
	name := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "region %d", &n); err != nil {
			return -1
		}
		return n
	}
	for again := true; again; {
		again = false
		d.edges(func(_ bool, a, b int, _ float64) {
			x, y := name(d.owner[a]), name(d.owner[b])
			if x >= 0 && y >= 0 && x != y {
				d.owner[a] = fmt.Sprintf("region %d", min(x, y))
				d.owner[b] = d.owner[a]
				again = true
			}
		})
	}
	_ = m
}

// edges calls do for each pair of neighbours, copies left out, with the length of the face between them over their
// distance; a face at the end of the mesh has half the length.
func (d *direct) edges(do func(horizontal bool, a, b int, weight float64)) {
	m := d.mesh
	half := func(i, n int, periodic bool) float64 {
		if !periodic && (i == 0 || i == n-1) {
			return 0.5
		}
		return 1
	}
	px, py := m.PeriodicColumns(), m.PeriodicRows()
	for iy := range m.NY {
		for ix := range m.NX {
			if ring(ix, m.NX, px) != ix || ring(iy, m.NY, py) != iy {
				continue
			}
			if ix+1 < m.NX {
				do(true, iy*m.NX+ix, iy*m.NX+ring(ix+1, m.NX, px), half(iy, m.NY, py)*hy/hx)
			}
			if iy+1 < m.NY {
				do(false, iy*m.NX+ix, ring(iy+1, m.NY, py)*m.NX+ix, half(ix, m.NX, px)*hx/hy)
			}
		}
	}
}

func (d *direct) integrate() {
	m := d.mesh
	d.edges(func(_ bool, a, b int, weight float64) {
		step := d.values[a] - d.values[b]
		d.energy += weight * step * step / 2
		switch {
		case d.owner[a] != "" && d.owner[b] == "":
			d.flux[d.owner[a]] += weight * step
		case d.owner[b] != "" && d.owner[a] == "":
			d.flux[d.owner[b]] -= weight * step
		}
	})
	area := 0.0
	for iy := range m.NY {
		for ix := range m.NX {
			if ring(ix, m.NX, m.PeriodicColumns()) != ix || ring(iy, m.NY, m.PeriodicRows()) != iy {
				continue
			}
			wx, wy := 1.0, 1.0
			if !m.PeriodicColumns() && (ix == 0 || ix == m.NX-1) {
				wx = 0.5
			}
			if !m.PeriodicRows() && (iy == 0 || iy == m.NY-1) {
				wy = 0.5
			}
			v := d.at(ix, iy)
			d.energy += d.k2 * wx * wy * hx * hy * v * v / 2
			d.mean += wx * wy * v
			area += wx * wy
			if d.owner[iy*m.NX+ix] != "" {
				continue
			}
			g, _ := d.Derivative(0, iy, ix)
			for _, side := range []struct {
				name string
				here bool
				part float64
			}{{"left", ix == 0, hy * wy}, {"right", ix == m.NX-1, hy * wy}, {"top", iy == 0, hx * wx},
				{"bottom", iy == m.NY-1, hx * wx}} {
				if side.here {
					d.flux[side.name] += g * side.part
				}
			}
		}
	}
	d.mean /= area
}

// The results are those of the definitions, and the same bits for any number of ranks, between all walls and with
// regions of all shapes, also across periodic sides and the ends of stripes.
func TestResultsOfAnyRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pairs := [][2]solver.Wall{{solver.Fixed, solver.Fixed}, {solver.Neumann, solver.Neumann},
		{solver.Fixed, solver.Neumann}, {solver.Periodic, solver.Periodic}}
	for _, h := range pairs {
		for _, v := range pairs {
			for _, density := range []float64{0, 0.2, 0.6} {
				walls := solver.Walls{Left: h[0], Right: h[1], Top: v[0], Bottom: v[1]}
				w := newWorld(r, 11, 34, walls, density)
				one := tally(t, w, 1)
				check(t, one, newDirect(w))
				for _, ranks := range []int{2, 4} {
					if many := tally(t, w, ranks); !reflect.DeepEqual(many, one) {
						t.Errorf("%v, density %v: %d ranks have %+v, one has %+v", walls, density, ranks, many, one)
					}
				}
			}
		}
	}
}

func check(t *testing.T, got Results, want *direct) {
	t.Helper()
	near := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > 1e-11*(1+math.Abs(want)) {
			t.Errorf("%v: %s %v, want %v", want, what, got, want)
		}
	}
	near("energy", got.Energy, want.energy)
	near("mean", got.Mean, want.mean)
	for name, flux := range got.Flux {
		near("flux "+name, flux, want.flux[name])
	}
	regions := 0
	for name := range want.flux {
		if strings.HasPrefix(name, "region") {
			regions++
		}
	}
	points := map[string]int64{}
	m := want.mesh
	for i, name := range want.owner {
		ix, iy := i%m.NX, i/m.NX
		if ring(ix, m.NX, m.PeriodicColumns()) == ix && ring(iy, m.NY, m.PeriodicRows()) == iy {
			points[name]++
		}
	}
	if len(got.Regions) < regions {
		t.Errorf("%v: %d regions, want at least %d", m.Walls, len(got.Regions), regions)
	}
	for _, g := range got.Regions {
		name := want.owner[g.First.IY*m.NX+g.First.IX]
		near(name, g.Flux, want.flux[name])
		if g.Points != points[name] || g.First.Value != want.at(g.First.IX, g.First.IY) {
			t.Errorf("%v: %s: %+v, want %d points", m.Walls, name, g, points[name])
		}
	}
	for _, p := range []Point{got.Min, got.Max} {
		if p.Value != want.at(p.IX, p.IY) {
			t.Errorf("%+v, want the value %v", p, want.at(p.IX, p.IY))
		}
	}
	for _, v := range want.values {
		if v < got.Min.Value || v > got.Max.Value {
			t.Errorf("%v lies outside %v to %v", v, got.Min.Value, got.Max.Value)
		}
	}
}

// More regions than a rank tells apart are left out; everything else stays.
func TestTooManyRegions(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(3, 4)), 81, 82, solver.Walls{}, 0.1)
	for i := range w.fixed { // a chessboard
		w.fixed[i] = (i/81+i%81)%2 == 0
	}
	one := tally(t, w, 1)
	if one.Regions == nil || len(one.Regions) > 0 || one.Omitted != "more than 1024 runs of fixed "+
		"points begin, in a row or in the mesh" {
		t.Errorf("%d regions, %q", len(one.Regions), one.Omitted)
	}
	want := newDirect(w)
	for _, wall := range []string{"left", "right", "top", "bottom"} {
		if got := *one.Flux[wall]; math.Abs(got-want.flux[wall]) > 1e-9 {
			t.Errorf("flux %s %v, want %v", wall, got, want.flux[wall])
		}
	}
	if many := tally(t, w, 8); !reflect.DeepEqual(many, one) {
		t.Errorf("%+v, one rank has %+v", many, one)
	}
}
