package problem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// valueRows returns a value of all points of p, row by row.
func valueRows(t *testing.T, p *Problem, k solver.Value) [][]float64 {
	t.Helper()
	m := p.Mesh()
	rows := make([][]float64, m.NY)
	buf := make([]byte, m.RowBytes())
	for iy := range rows {
		if err := p.ValueRow(iy, k, buf); err != nil {
			t.Fatal(err)
		}
		for ix := range m.NX {
			rows[iy] = append(rows[iy], math.Float64frombits(binary.LittleEndian.Uint64(buf[8*ix:])))
		}
	}
	return rows
}

// The weights, the diagonal and the couplings of docs/numerics.md, on a mesh of 4 x 3 points with hx = 1 and hy = 2,
// where a is 1 in the columns 0 and 1, and 3 in the others.
func TestWeights(t *testing.T) {
	cfg := config(4, 3, "float64", configs.Problem{Left: "7", Right: "robin(5, 11)", Top: "neumann(13)", Bottom: "0",
		Source: "17", Coefficient: "ix < 2 ? 1 : 3", Screening: "ix"})
	cfg.Grid.Width, cfg.Grid.Height = 3, 4
	p := open(t, cfg)
	o := p.Operator()
	if err := o.Check(solver.Float64); err != nil || !o.Weighted || o.Ratio != 0.25 || o.Fixed == nil {
		t.Errorf("operator %+v, %v", o, err)
	}
	// Column 1 of row 0 has neighbours at 1 and 3, and the mirror point below; column 3 is on the Robin wall.
	d := [4]float64{0, 1 + 1.5 + 2*0.25 + 1, 1.5 + 3 + 2*0.75 + 2, 2*3 + 2*0.75 + 3 + 2*5}
	equal(t, valueRows(t, p, solver.West)[0:1], [][]float64{{0, 1 / d[1], 1.5 / d[2], 3 / d[3]}})
	equal(t, valueRows(t, p, solver.East)[0:1], [][]float64{{0, 1.5 / d[1], 3 / d[2], 3 / d[3]}})
	equal(t, valueRows(t, p, solver.North)[0:1], [][]float64{{0, 0.25 / d[1], 0.75 / d[2], 0.75 / d[3]}})
	equal(t, valueRows(t, p, solver.South)[0:1], [][]float64{{0, 0.25 / d[1], 0.75 / d[2], 0.75 / d[3]}})
	equal(t, valueRows(t, p, solver.Source)[0:1], [][]float64{{0, (17 + 2*1*13./2) / d[1], (17 + 2*3*13./2) / d[2],
		(17 + 2*11 + 2*3*13./2) / d[3]}})
	largest, err := p.Maxima(t.Context(), 0, 3)
	if err != nil || largest.Diagonal != d[3] {
		t.Errorf("largest diagonal %v, %v", largest.Diagonal, err)
	}
	p.SetMaxima(largest) // 20.5
	const unit = 32.0
	equal(t, valueRows(t, p, solver.Diagonal), [][]float64{{0, d[1] / unit, d[2] / unit, d[3] / 2 / unit},
		{0, 2 * d[1] / unit, 2 * d[2] / unit, d[3] / unit}, {0, 0, 0, 0}})
	equal(t, valueRows(t, p, solver.EastFace)[:2], [][]float64{{1 / unit, 1.5 / unit, 3 / unit, 0},
		{2 * 1 / unit, 2 * 1.5 / unit, 2 * 3 / unit, 0}})
	equal(t, valueRows(t, p, solver.SouthFace), [][]float64{{0.5 / unit, 0.5 / unit, 1.5 / unit, 0.75 / unit},
		{0.5 / unit, 0.5 / unit, 1.5 / unit, 0.75 / unit}, {0, 0, 0, 0}})
}

// A constant coefficient divides the source and the screening, and one of 1 changes nothing.
func TestConstantCoefficient(t *testing.T) {
	with := open(t, config(9, 7, "float64", configs.Problem{Source: "6 + x", Screening: "4", Coefficient: "2",
		Left: "neumann(3)"}))
	without := open(t, config(9, 7, "float64", configs.Problem{Source: "(6 + x)/2", Screening: "2",
		Left: "neumann(3)"}))
	if a, b := with.Operator(), without.Operator(); a.Scale != b.Scale || a.Blend != b.Blend || a.Weighted {
		t.Errorf("operators %+v, %+v", a, b)
	}
	equal(t, source(t, with), source(t, without))
}

// A fixed point has its own coefficient, and where the coefficient is 0 there is no point: it keeps the value 0, and no
// weight leads to it.
func TestHolesAndFixedPoints(t *testing.T) {
	p := open(t, config(5, 5, "float64", configs.Problem{Left: "9", Right: "9", Top: "9", Bottom: "9", Initial: "8",
		Fixed: "ix == 2 and iy == 1", Coefficient: "ix == 3 and iy <= 1 ? 0 : ix == 2 ? 100 : 1"}))
	equal(t, field(t, p)[:2], [][]float64{{9, 9, 9, 0, 9}, {9, 8, 8, 0, 9}})
	row := make([]bool, 5)
	if err := p.FixedRow(1, row); err != nil || fmt.Sprint(row) != "[false false true true false]" {
		t.Errorf("fixed %v, %v", row, err)
	}
	equal(t, valueRows(t, p, solver.East)[1:2], [][]float64{{0, 200. / 101 / (3 + 200./101), 0, 0, 0}})
	equal(t, valueRows(t, p, solver.North)[2:3], [][]float64{{0, 1. / (3 + 200./101), 100. / (200 + 400./101), 0, 0}})
	if n, err := p.CountFixed(t.Context(), 0, 5); n != 1 || err != nil {
		t.Errorf("%d fixed points, %v", n, err)
	}
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Fixed nodes of a raster have their own conductance, and so have those of a wall; one without any has that of its free
// neighbour, but for a wall.
func TestConductanceOfFixedNodes(t *testing.T) {
	series := func(a, b float64) float64 { return 2 * a * b / (a + b) }
	for _, c := range []struct {
		coefficient, fixed string
		want               float64 // per height, which is that of three rows
	}{
		{"ix == 2 ? 3 : 1", "ix == 2", 1 / (1 + 1/series(1, 3))},
		{"ix == 2 ? 0 : 5", "ix == 2", 5. / 2},
		{"ix == 0 ? 3 : ix == 2 ? 0 : 1", "ix % 2 == 0", 1 / (1 + 1/series(1, 3))},
		{"ix == 0 ? 0 : 1", "ix % 2 == 0", 0},
	} {
		_, r := solve(t, open(t, config(5, 4, "float64", configs.Problem{Left: "1", Right: "0", Top: "neumann(0)",
			Bottom: "neumann(0)", Coefficient: c.coefficient, Fixed: c.fixed})))
		if got, want := *r.Flux["left"], 3*c.want; math.Abs(got-want) > 1e-12 {
			t.Errorf("%+v: flux %v, want %v", c, got, want)
		}
		if got, want := *r.Regions[0].Flux, -3*c.want; c.fixed == "ix == 2" && math.Abs(got-want) > 1e-12 {
			t.Errorf("%+v: charge %v, want %v", c, got, want)
		}
	}
}

// Outside the material the initial field, the source and the screening need no values: arrays may have NaN there.
func TestNoValuesOutside(t *testing.T) {
	nan, path := math.NaN(), filepath.Join(t.TempDir(), "a.npy")
	for at, value := range map[int]float64{9: nan, 10: math.Inf(1)} { // row 2, columns 1 and 2
		data := npyBytes(1, "<f8", "False", "(5, 4)", 20, solver.Float64)
		binary.LittleEndian.PutUint64(data[len(data)-8*(20-at):], math.Float64bits(value))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, def := range []configs.Problem{{Initial: path}, {Source: path}} {
			key := "problem.initial"
			if def.Initial == "" {
				key = "problem.source"
			}
			def.Coefficient = "iy == 2 ? 0 : 1"
			p := open(t, config(4, 5, "float64", def))
			if err := p.Check(t.Context()); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if got := field(t, p)[2]; !slices.Equal(got, []float64{0, 0, 0, 0}) {
				t.Errorf("%s: row 2 is %v", key, got)
			}
			p = open(t, config(4, 5, "float64", configs.Problem{Screening: path, Coefficient: "iy == 2 ? 0 : 1"}))
			k2 := make([]float64, 4)
			if err := errors.Join(p.Check(t.Context()), p.Screenings(2, k2)); err != nil || k2[at-8] != 0 {
				t.Errorf("screenings %v, %v", k2, err)
			}
			def.Coefficient = "iy == 1 ? 0 : 1"
			if def.Initial != "" && value != value {
				continue // it is an unknown value
			}
			want := fmt.Sprintf("%s %q at row 2, column %d", key, path, at-8)
			err := open(t, config(4, 5, "float64", def)).Check(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestBadMaterials(t *testing.T) {
	insulated := configs.Problem{Left: "neumann(0)", Right: "neumann(1)", Top: "neumann(0)", Bottom: "neumann(-1)"}
	with := func(p configs.Problem, do func(*configs.Problem)) configs.Problem {
		do(&p)
		return p
	}
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{Coefficient: "y - 0.5"}, `problem.coefficient "y - 0.5" at row 1, column 0 ` +
			`(x = 0, y = 0.25): -0.25; it must be 0, where there is no material, or 1e-60 to 1e+60`},
		{configs.Problem{Coefficient: "1/(ix-3)"}, `problem.coefficient "1/(ix-3)" at row 1, column 0 ` +
			`(x = 0, y = 0.25): -0.3333333333333333; it must be 0, where there is no material, or 1e-60 to 1e+60`},
		{configs.Problem{Coefficient: "ix == 3 and iy == 2 ? 0/0 : 1"}, `problem.coefficient "ix == 3 and iy == 2 ? ` +
			`0/0 : 1" at row 2, column 3 (x = 0.5, y = 0.5): NaN; it must be 0, where there is no material, or 1e-60 ` +
			`to 1e+60`},
		{configs.Problem{Coefficient: "1 - 2"}, `problem.coefficient "1 - 2": -1; it must be 1e-60 to 1e+60`},
		{configs.Problem{Coefficient: "0 * x"}, `problem.coefficient: no point is ` +
			`free and has a coefficient above 0`},
		{configs.Problem{Screening: "x - 0.5"}, `problem.screening "x - 0.5" at row 1, column 1 ` +
			`(x = 0.16666666666666666, y = 0.25): -0.33333333333333337; it must be finite and at least 0`},
		{configs.Problem{Right: "robin(y - 0.5, 0)"}, `problem.right "robin(y - 0.5, 0)" at row 1, column 6 ` +
			`(x = 1, y = 0.25): -0.25; h must be finite and at least 0`},
		// Means over squares, and along walls, hide no value at a point.
		{configs.Problem{Left: "neumann(0)", Screening: "x < 0.02 ? -1 : 10"}, `problem.screening ` +
			`"x < 0.02 ? -1 : 10" at row 1, column 0 (x = 0, y = 0.25): -1; it must be finite and at least 0`},
		{configs.Problem{Right: "robin(abs(y-0.5) < 0.02 ? -1 : 5, 0)"}, `problem.right ` +
			`"robin(abs(y-0.5) < 0.02 ? -1 : 5, 0)" at row 2, column 6 (x = 1, y = 0.5): -1; ` +
			`h must be finite and at least 0`},
		{configs.Problem{Right: "robin(1, 1/(iy-2))"}, `problem.right "robin(1, 1/(iy-2))" at row 2, column 6 ` +
			`(x = 1, y = 0.5): +Inf; values must be finite`},
		{with(insulated, func(p *configs.Problem) { p.Coefficient = "1 + x" }), `solver.method "jacobi": no side ` +
			`has values, so any constant can be added to a solution, and sweeps keep what alternates from point to ` +
			`point; take multigrid, which finds the field with the mean 0, or give a value on a side or points in ` +
			`problem.fixed`},
		{with(insulated, func(p *configs.Problem) { p.Screening = "0 * x" }), unfixed(insulated)},
		{configs.Problem{Coefficient: islandAt23, Source: "1"}, `problem.source "1": ` + adrift(2, 3,
			"x = 0.5, y = 0.5")},
		{configs.Problem{Coefficient: islandAt23, Source: "ix == 3 and iy == 2 ? -1e-30 : 0"}, `problem.source ` +
			`"ix == 3 and iy == 2 ? -1e-30 : 0": ` + adrift(2, 3, "x = 0.5, y = 0.5")},
		{configs.Problem{Left: "neumann(iy == 2 ? 1 : 0)", Coefficient: "ix + abs(iy-2) == 1 ? 0 : 1"},
			`problem.left "neumann(iy == 2 ? 1 : 0)": ` + adrift(2, 0, "x = 0, y = 0.5")},
		{configs.Problem{Coefficient: "ix == 3 and iy == 2 ? 1 : 0"}, `problem.coefficient: the material touches no ` +
			`side and no point with values, and has no source: its field would be 0 everywhere`},
		{with(insulated, func(p *configs.Problem) { p.Screening = "x > 0.9 ? 1e-12 : 0" }), `problem.screening: ` +
			`in the material around row 0, column 0 (x = 0, y = 0), it and robin sides alone ` +
			`determine a constant, and are 1.1e-15 of the diagonals of its equations; with float64 it must be at ` +
			`least 2.3e-13, as rounding loses less; values on a side or fixed points help, too`},
	} {
		p, err := New(t.Context(), config(7, 5, "float64", c.p))
		if err == nil {
			err = p.Check(t.Context())
		}
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// unfixed is the error about a problem without values.
func unfixed(p configs.Problem) string {
	return fmt.Sprintf("problem.left %q, right %q, top %q, bottom %q: no side has values, so any constant can be "+
		"added to a solution; give a value on a side, points in problem.fixed, problem.screening above 0, or a robin "+
		"side with h above 0", p.Left, p.Right, p.Top, p.Bottom)
}

// islandAt23 is a coefficient with a part of one point, on 7 x 5 points.
const islandAt23 = "abs(ix-3) == 1 or abs(iy-2) == 1 ? 0 : 1"

// adrift is the end of the error about a driven part of the material that nothing fixes.
func adrift(iy, ix int, at string) string {
	return fmt.Sprintf("at row %d, column %d (%s) they add to material that touches no side and no point with values, "+
		"so that nothing takes it up; make them 0 there, or give a value on a side, points in problem.fixed, "+
		"problem.screening above 0, or a coefficient of 0", iy, ix, at)
}

// Values of a side without material have no effect, and a derivative is no flux, which the user learns.
func TestWarningsAboutSides(t *testing.T) {
	const why = ": the coefficient is 0 along the whole side, so its values have no effect"
	const noFlux, flux = ": it gives du/dn, not the flux a du/dn, which is ", "; flux(q) gives a du/dn = q"
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{Coefficient: "x", Left: "1", Top: "2"}, `problem.left "1"` + why},
		{configs.Problem{Coefficient: "ix < 6 and iy < 4 ? 1 : 0", Right: "y", Bottom: "2"}, `problem.right "y"` + why +
			"\n" + `problem.bottom "2"` + why},
		{configs.Problem{Coefficient: "x"}, ""},
		{configs.Problem{Coefficient: "x", Left: "robin(1, 2)"}, ""},
		{configs.Problem{Coefficient: "x < 0.5 and iy > 0 ? 0 : 1", Left: "1"}, ""},
		{configs.Problem{Coefficient: "x", Left: "1", Fixed: "x == 0 and y == 0.5"}, ""}, // an area has that beside it
		{configs.Problem{Coefficient: "x", Left: "1", Fixed: "ix == 0 and iy == 2"}, `problem.left "1"` + why},
		{configs.Problem{Coefficient: "x", Left: "1", Fixed: "ix == 3"}, `problem.left "1"` + why},
		{configs.Problem{Left: "1"}, ""},
		{configs.Problem{Left: "neumann(100)", Coefficient: "0.063"}, `problem.left "neumann(100)"` + noFlux +
			"6.3 at row 0, column 0 (x = 0, y = 0), where the coefficient is 0.063" + flux},
		{configs.Problem{Bottom: "neumann(x < 0.5 ? 0 : 2)", Coefficient: "x < 0.9 ? 1 : 4"},
			`problem.bottom "neumann(x < 0.5 ? 0 : 2)"` + noFlux +
				"8 at row 4, column 6 (x = 1, y = 1), where the coefficient is 4" + flux},
		{configs.Problem{Left: "flux(100)", Right: "neumann(0)", Top: "robin(1, 2)", Coefficient: "3"}, ""},
		{configs.Problem{Left: "neumann(1)", Top: "neumann(x)", Coefficient: "y > 0.5 and x > 0.5 ? 3 : 1"}, ""},
	} {
		p, err := New(t.Context(), config(7, 5, "float64", c.p))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Warnings(t.Context()), "\n"); got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.p, got, c.want)
		}
	}
}

// A study opens a problem for each run, so opening one takes little memory.
func TestMemoryOfAProblem(t *testing.T) {
	cfg := config(129, 129, "float64", configs.Problem{Coefficient: "x < 0.5 ? 1 : 4"})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	open(t, cfg)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes, want at most 1 MiB", got)
	}
}
