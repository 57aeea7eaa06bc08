package oracle_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/compute/oracle"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// strips are three strips of points in the order of their names, on a mesh of 65 x 49 points.
var strips = []struct {
	name           string
	left, right, y int
}{{"a", 8, 20, 24}, {"b", 26, 38, 20}, {"c", 44, 56, 24}}

// stripRegions returns the key problem.regions of strips with values.
func stripRegions(values ...string) string {
	var list []string
	for i, s := range strips {
		list = append(list, fmt.Sprintf("%s value=%s where=ix >= %d and ix <= %d and iy == %d", s.name, values[i],
			s.left, s.right, s.y))
	}
	return "problem.regions=" + strings.Join(list, "; ")
}

// charges solves the problem of the strips directly, with a source and sides at side, and returns their charges.
func charges(t *testing.T, values [3]float64, source, side float64) (q [3]float64) {
	t.Helper()
	m := solver.Mesh{NX: 65, NY: 49, DType: solver.Float64}
	n := m.NX * m.NY
	p := oracle.Problem{Mesh: m, Width: 1, Height: 0.75, Initial: slices.Repeat([]float64{side}, n),
		Source: slices.Repeat([]float64{source}, n), Fixed: make([]bool, n)}
	for i, s := range strips {
		for ix := s.left; ix <= s.right; ix++ {
			p.Fixed[s.y*m.NX+ix], p.Initial[s.y*m.NX+ix] = true, values[i]
		}
	}
	u, err := oracle.NewEquations(p).Solve()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range strips {
		for ix := s.left; ix <= s.right; ix++ {
			at := s.y*m.NX + ix
			for _, to := range []int{at - 1, at + 1, at - m.NX, at + m.NX} {
				if !p.Fixed[to] {
					q[i] += u[at] - u[to]
				}
			}
		}
		// What the source makes in the quarters of the cells around its points that have a free corner.
		q[i] -= source * float64(s.right-s.left+1) / (64 * 64)
	}
	return q
}

var stripKeys = []string{"grid.nx=65", "grid.ny=49", "grid.height=0.75", "solver.relative_tolerance=1e-12"}

// The matrix of three strips has the charges of the direct solution. It is symmetric, and its columns add up with the
// fluxes of the sides. Values, sources and sides of the problem make no difference.
func TestMatrixOfStrips(t *testing.T) {
	t.Parallel()
	o, err := run(t, 1, append(stripKeys, stripRegions("1", "floating(0.5)", "-2"), "output.matrix=true",
		"problem.source=3", "problem.top=x")...)
	if err != nil {
		t.Fatal(err)
	}
	m := o.Results.Matrix
	if !reflect.DeepEqual(m.Regions, []string{"a", "b", "c"}) || len(m.Sides) != 4 {
		t.Fatalf("%+v", m)
	}
	for j := range strips {
		var unit [3]float64
		unit[j] = 1
		want, column, row := charges(t, unit, 0, 0), 0.0, 0.0
		for i := range strips {
			if off := math.Abs(m.Maxwell[i][j] - want[i]); !(off < 1e-10) {
				t.Errorf("%d, %d: %.12g, off by %.2g", i, j, m.Maxwell[i][j], off)
			}
			if off := math.Abs(m.Maxwell[i][j] - m.Maxwell[j][i]); !(off < 1e-10) {
				t.Errorf("%d, %d: %.2g from symmetry", i, j, off)
			}
			if i != j && m.Mutual[i][j] != -m.Maxwell[i][j] {
				t.Errorf("%d, %d: mutual %g of %g", i, j, m.Mutual[i][j], m.Maxwell[i][j])
			}
			column, row = column+m.Maxwell[i][j], row+m.Maxwell[j][i]
		}
		for _, fluxes := range m.Sides {
			column += fluxes[j]
		}
		if !(math.Abs(column) < 1e-10) || !(math.Abs(row-m.Mutual[j][j]) < 1e-14) {
			t.Errorf("column %d adds up to %g, row to %g, and mutual has %g", j, column, row, m.Mutual[j][j])
		}
	}
}

// A floating strip has the value with which its charge in the direct solution is the one that is given, and the run is
// the one in which this value is given.
func TestFloatingStrips(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b, c string
		want    [3]float64 // values; NaN: floating
		charges [3]float64
	}{
		{"1", "floating", "0", [3]float64{1, math.NaN(), 0}, [3]float64{}},
		{"1", "floating(0.75)", "-2", [3]float64{1, math.NaN(), -2}, [3]float64{0, 0.75, 0}},
		{"floating(-1)", "0.5", "floating(1e3)", [3]float64{math.NaN(), 0.5, math.NaN()}, [3]float64{-1, 0, 1e3}},
	} {
		keys := append(slices.Clone(stripKeys), "problem.source=3", "problem.left=0.25", "problem.right=0.25",
			"problem.top=0.25", "problem.bottom=0.25")
		o, err := run(t, 1, append(keys, stripRegions(c.a, c.b, c.c))...)
		if err != nil {
			t.Fatal(err)
		}
		values := c.want
		var given []string
		largest := 1.0
		for i, name := range []string{"a", "b", "c"} {
			k := slices.IndexFunc(o.Results.Regions, func(r results.Region) bool { return r.Name == name })
			g := o.Results.Regions[k]
			if g.Floating != math.IsNaN(c.want[i]) || g.Floating && !(math.Abs(*g.Flux-c.charges[i]) < 1e-8) {
				t.Errorf("%+v: %+v", c, g)
			}
			values[i], largest = g.Min, max(largest, math.Abs(g.Min))
			given = append(given, fmt.Sprintf("%.17g", g.Min))
		}
		for i, q := range charges(t, values, 3, 0.25) {
			if off := math.Abs(q - c.charges[i]); math.IsNaN(c.want[i]) && !(off < 1e-10*largest) {
				t.Errorf("%+v: charge %d of the direct solution is %.12g, off by %.2g", c, i, q, off)
			}
		}
		fixed, err := run(t, 1, append(keys, stripRegions(given...))...)
		if err != nil || fixed.FieldHash != o.FieldHash || fixed.Norm == nil || *fixed.Norm != *o.Norm {
			t.Errorf("%+v: field %s, with given values %s (%v)", c, o.FieldHash, fixed.FieldHash, err)
		}
	}
}

const radius = "hypot(x-0.5, y-0.5)"

// Two round conductors around one another, and a shell between them that is thick and floats: formulas give its value,
// with and without a charge, and the matrix.
func TestFloatingShell(t *testing.T) {
	t.Parallel()
	const core, inner, outer, shield = 0.08, 0.16, 0.24, 0.45
	to, from := 2*math.Pi/math.Log(inner/core), 2*math.Pi/math.Log(shield/outer) // capacitances
	off := func(n int, charge float64) (value, entry float64) {
		o, err := run(t, 1, append(mesh(n, n), "output.matrix=true", fmt.Sprintf("problem.regions=core value=1 "+
			"where=%s < %g; shell value=floating(%g) where=%s > %g and %s < %g; shield value=0 where=%s > %g", radius,
			core, charge, radius, inner, radius, outer, radius, shield))...)
		if err != nil {
			t.Fatal(err)
		}
		k := slices.IndexFunc(o.Results.Regions, func(r results.Region) bool { return r.Name == "shell" })
		want := [][]float64{{to, -to, 0}, {-to, to + from, -from}}
		for i, row := range want {
			for j, v := range row {
				entry = max(entry, math.Abs(o.Results.Matrix.Maxwell[i][j]-v)/to)
			}
		}
		return math.Abs(o.Results.Regions[k].Min - (to+charge)/(to+from)), entry
	}
	for _, charge := range []float64{0, -20} {
		coarse, coarseEntry := off(65, charge)
		fine, fineEntry := off(129, charge)
		t.Logf("charge %g: value off by %.3g and %.3g, matrix by %.3g and %.3g", charge, coarse, fine, coarseEntry,
			fineEntry)
		if !(fine < 3e-4) || !(fineEntry < 4e-4) || !(coarse > 2.5*fine) || !(coarseEntry > 2.5*fineEntry) {
			t.Errorf("charge %g: too far off, or the order is too low", charge)
		}
	}
}

// What the mesh leaves of an error in the value of a floating region is about right.
func TestErrorOfFloatingValue(t *testing.T) {
	t.Parallel()
	o, err := run(t, 1, append(mesh(129, 129), "solver.mesh_error=on", "problem.regions=core value=1 where="+radius+
		" < 0.08; shell value=floating where="+radius+" > 0.16 and "+radius+" < 0.24; shield value=0 where="+radius+
		" > 0.45")...)
	if err != nil {
		t.Fatal(err)
	}
	to, from := 1/math.Log(2), 1/math.Log(0.45/0.24)
	for i, g := range o.Results.Regions {
		if e := o.Results.Errors.Values[i]; (e != nil) != g.Floating {
			t.Errorf("%+v: %v", g, e)
		} else if off := math.Abs(g.Min - to/(to+from)); e != nil && !(off < 10**e && *e < 30*off) {
			t.Errorf("%.8g is off by %.3g, and said to be by %.3g", g.Min, off, *e)
		}
	}
}

// The values, the matrix and the field have the same bits for any number of ranks.
func TestFloatingOnRanks(t *testing.T) {
	t.Parallel()
	keys := append(slices.Clone(stripKeys), stripRegions("1", "floating(2)", "floating"), "output.matrix=true",
		"solver.mesh_error=on", "problem.coefficient=x < 0.5 ? 1 : 3")
	want, err := run(t, 1, keys...)
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{2, 3, 8} {
		got, err := run(t, ranks, keys...)
		if err != nil || got.FieldHash != want.FieldHash || !reflect.DeepEqual(got.Results, want.Results) {
			t.Errorf("%d ranks: %+v, %v, want %+v", ranks, got.Results, err, want.Results)
		}
	}
}

// A region floats if nothing but Robin sides take its charge, of which the energy of the field is a small part.
func TestFloatingBetweenRobinSides(t *testing.T) {
	t.Parallel()
	keys := []string{"grid.nx=65", "problem.regions=a value=floating(1) where=hypot(x-0.5,y-0.5)<0.2"}
	for _, side := range []string{"left", "right", "top", "bottom"} {
		keys = append(keys, "problem."+side+"=robin(0.1,0)")
	}
	for _, ranks := range []int{1, 3} {
		o, err := run(t, ranks, keys...)
		if err != nil {
			t.Fatalf("%d ranks: %v", ranks, err)
		}
		taken := 0.0
		for _, side := range o.Results.Flux {
			taken -= *side
		}
		if math.Abs(taken-1) > 1e-7 {
			t.Errorf("%d ranks: the sides take %g, want 1", ranks, taken)
		}
	}
}

// What cannot float is refused, on all ranks alike.
func TestFloatingIsRefused(t *testing.T) {
	t.Parallel()
	const insulated = "problem.left=neumann(0)|problem.right=neumann(0)|problem.top=neumann(0)|" +
		"problem.bottom=neumann(0)"
	for _, c := range []struct{ keys, want string }{
		{insulated + "|problem.regions=a value=floating where=x<0.2;b value=floating(1) where=x>0.9",
			"problem.regions: all regions are floating and no side has values, so any constant can be " +
				"added to a solution; give a region or a side a value, problem.screening above 0, or a " +
				"robin side with h above 0"},
		{"problem.regions=a value=floating where=hypot(x-0.5,y-0.5)<0.2|" +
			"problem.coefficient=abs(hypot(x-0.5,y-0.5)-0.3)<0.05?0:1", "problem.regions: nothing determines the " +
			"value of a, which is floating: no material leads from it to a side or a region with a value"},
		{"problem.regions=a value=floating where=hypot(x-0.504,y-0.504)<0.001;b value=1 where=x>0.9",
			"problem.regions: no point of the mesh lies in a"},
		{"problem.regions=a value=floating where=x<0.2|solver.method=jacobi", "problem.regions floating: needs " +
			"solver.method multigrid, not jacobi"},
		{"problem.top=1|output.matrix=true", "output.matrix true: problem.regions or problem.colours has to name at " +
			"least one region with a value"},
		{"problem.regions=a value=1 where=x<0.2|output.matrix=true|solver.method=jacobi", "output.matrix true: needs " +
			"solver.method multigrid, not jacobi"},
		{"problem.regions=a value=1 where=x<0.2|output.matrix=true|output.results=false", "output.matrix true: " +
			"output.results has to be true"},
	} {
		keys := append(strings.Split(c.keys, "|"), "grid.nx=65")
		for _, ranks := range []int{1, 3, 10} { // of ten, three have no rows
			_, err := run(t, ranks, keys...)
			if err == nil || err.Error() != c.want {
				t.Errorf("%s on %d ranks: %v, want %s", c.keys, ranks, err, c.want)
			}
		}
	}
}
