package results

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
)

// world is a whole mesh with a field, fixed points and a right-hand side of 7 row - column^2; its Neumann walls have
// the derivative 1.5 + column - 3 row.
type world struct {
	mesh   solver.Mesh
	k2     float64
	plain  bool     // the right-hand side is 0
	pole   *float64 // the right-hand side in column 0, and derivatives there; nil for the usual ones
	values []float64
	fixed  []bool   // nil without fixed points
	names  []string // of regions that lie in columns of three points in turn; nil for connected regions
}

const hx, hy = 0.5, 0.25

func (w world) Mesh() solver.Mesh                { return w.mesh }
func (w world) Weighted() bool                   { return false }
func (w world) Spacings() (float64, float64)     { return hx, hy }
func (w world) Screening() float64               { return w.k2 }
func (w world) Plain() bool                      { return w.plain && w.k2 == 0 }
func (w world) Axis() (float64, bool)            { return 1, false }
func (w world) Turn(int, Place, []float64)       {}
func (w world) TurnOfWall(int, int, int) float64 { return 1 }
func (w world) at(ix, iy int) float64            { return w.values[iy*w.mesh.NX+ix] }
func (w world) FixedRow(iy int, d []bool) error  { copy(d, w.fixed[iy*w.mesh.NX:]); return nil }

func (w world) RegionFloats(int) bool { return false }

func (w world) RegionNames() []string { return w.names }
func (w world) Region(_, ix int) int {
	return ring(ix, w.mesh.NX, w.mesh.PeriodicColumns()) / 3 % len(w.names)
}

func (w world) RegionRow(iy int, fixed []bool, dst []int) {
	for ix, on := range fixed {
		if dst[ix] = -1; on {
			dst[ix] = w.Region(iy, ix)
		}
	}
}

func (w world) Operator() (o solver.Operator) {
	if w.fixed != nil {
		o.Fixed = w
	}
	if !w.plain {
		o.Values = w
	}
	return o
}

func (w world) ValueRow(int, solver.Value, []byte) error { return errors.New("only sweeps need it") }

func (w world) RightHandSide(iy, col int, dst []float64) error {
	for i := range dst {
		dst[i] = w.f(col+i, iy)
	}
	return nil
}

func (w world) f(ix, iy int) float64 {
	switch {
	case w.plain:
		return 0
	case w.pole != nil && ix == 0:
		return *w.pole
	}
	return float64(7*iy - ix*ix)
}

func (w world) Row(iy int, dst []byte) error {
	for ix := range w.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(w.at(ix, iy)))
	}
	return nil
}

func (w world) Derivative(_, iy, ix int) (float64, error) {
	if w.pole != nil && ix == 0 && *w.pole != 0 {
		return *w.pole, errors.New("not finite")
	} else if w.pole != nil && ix == 0 {
		return 0, nil
	}
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

// tally returns the results that the given number of ranks work out.
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
		rows := NewRows(w, s, a)
		for iy := range w.mesh.NY { // rows of others, too, which the tally ignores
			if err := rows.AddRows(iy, row(iy)); err != nil {
				t.Fatal(err)
			}
		}
		var next []byte
		if i < ranks-1 || w.mesh.PeriodicRows() {
			next = row(stripes[(i+1)%ranks].Lo)
		}
		if err := rows.End(next); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(a.Part())
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

// The results are those of the definitions, and the same bits for any number of ranks, between all walls and with
// regions of all shapes, also across periodic sides and the ends of stripes.
func TestResultsOfAnyRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pairs := [][2]solver.Wall{{solver.Dirichlet, solver.Dirichlet}, {solver.Neumann, solver.Neumann},
		{solver.Dirichlet, solver.Neumann}, {solver.Periodic, solver.Periodic}}
	for _, h := range pairs {
		for _, v := range pairs {
			for _, density := range []float64{0, 0.2, 0.6} {
				walls := solver.Walls{Left: h[0], Right: h[1], Top: v[0], Bottom: v[1]}
				w := newWorld(r, 11, 34, walls, density)
				if density == 0.2 && h[0] == solver.Dirichlet {
					w.plain, w.k2 = true, 0
				}
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

// Regions with names are the fixed points with their numbers, connected or not, by their first points. A name without
// points is left out.
func TestNamedRegionsOfAnyRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, walls := range []solver.Walls{{}, solver.WrapRows(true), {Left: solver.Periodic, Right: solver.Periodic,
		Top: solver.Neumann}} {
		w := newWorld(r, 11, 34, walls, 0.3)
		w.names = []string{"a", "b", "c", "d", "none"}
		one := tally(t, w, 1)
		check(t, one, newDirect(w))
		var names []string
		for _, g := range one.Regions {
			names = append(names, g.Name)
		}
		if slices.Sort(names); strings.Join(names, " ") != "a b c d" {
			t.Errorf("%v: regions %q, want a b c d", walls, names)
		}
		for _, ranks := range []int{2, 4} {
			if many := tally(t, w, ranks); !reflect.DeepEqual(many, one) {
				t.Errorf("%v: %d ranks have %+v, one has %+v", walls, ranks, many, one)
			}
		}
	}
	if _, err := Merge(world{names: []string{"a"}, mesh: solver.Mesh{NX: 4, NY: 4}}, []Part{{}}); err == nil ||
		err.Error() != "results of rank 0: 0 regions, want 1" {
		t.Errorf("a part without regions: %v", err)
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
	near("source less screening", new(*got.Balance.Source-*got.Balance.Screening), want.made)
	near("remainder", got.Balance.Remainder, want.remainder())
	if got.Omitted == "" {
		net := 0.0
		for _, g := range got.Regions {
			net += *g.Flux
		}
		near("net flow of regions", got.Balance.Regions, net)
	}
	near("in less out", new(*got.Balance.In-*got.Balance.Out), want.remainder())
	for name, flux := range got.Flux {
		side := got.Balance.Sides[name]
		near("in less out of "+name, new(*side.In-*side.Out), *flux)
		if *side.In < 0 || *side.Out < 0 {
			t.Errorf("%v: %s has %v in and %v out", want, name, *side.In, *side.Out)
		}
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
		if p.Value != want.at(p.IX, p.IY) || p.X != hx*float64(p.IX) || p.Y != hy*float64(p.IY) {
			t.Errorf("%+v, want the value %v at its distances", p, want.at(p.IX, p.IY))
		}
	}
	for _, v := range want.values {
		if v < got.Min.Value || v > got.Max.Value {
			t.Errorf("%v lies outside %v to %v", v, got.Min.Value, got.Max.Value)
		}
	}
}

// More regions than a rank tells apart are left out; everything else stays.
// The lines name nine regions, and of ten the first eight and that there are two more.
func TestLinesOfManyRegions(t *testing.T) {
	lines := func(n int) (texts []string) {
		for _, l := range (Results{Regions: slices.Repeat([]Region{{Points: 5, Name: "strip"}}, n)}).Lines()[3:] {
			texts = append(texts, l[1])
		}
		return texts
	}
	eight := slices.Repeat([]string{"strip at 0, 5 points: flux beyond float64"}, 8)
	if got, want := lines(9), append(eight, eight[0]); !slices.Equal(got, want) {
		t.Errorf("nine: got %q\nwant %q", got, want)
	}
	if got, want := lines(10), append(eight, "and 2 more, which are in the report"); !slices.Equal(got, want) {
		t.Errorf("ten: got %q\nwant %q", got, want)
	}
}

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
	if rest := want.remainder(); math.Abs(*one.Balance.Remainder-rest) > 1e-9*math.Abs(rest) {
		t.Errorf("remainder %v, want %v", *one.Balance.Remainder, rest)
	}
	if many := tally(t, w, 8); !reflect.DeepEqual(many, one) {
		t.Errorf("%+v, one rank has %+v", many, one)
	}
}

// A right-hand side and a derivative that are not finite at a fixed wall, where no sweep reads them, count as 0.
func TestPolesAtFixedWalls(t *testing.T) {
	for _, bad := range []float64{math.Inf(1), math.NaN()} {
		w := newWorld(rand.New(rand.NewPCG(5, 6)), 9, 8, solver.Walls{Top: solver.Neumann}, 0)
		w.pole = &bad
		got := tally(t, w, 1)
		w.pole = new(float64)
		if want := tally(t, w, 1); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v, want %+v", bad, got, want)
		}
	}
}

func (w world) WallFlux(wall, iy, ix int, _ float64) (float64, error) {
	return w.Derivative(wall, iy, ix)
}
func (w world) Materials() Materials    { return nil }
func (w world) Given() solver.FixedRows { return w.Operator().Fixed }

// Areas implements Problem.
func (w world) Areas() bool { return false }

// Joined implements Problem.
func (w world) Joined(_, _ [2]float64) bool { return false }
