package problem

import (
	"math"
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// source returns b of all points of p, row by row.
func source(t testing.TB, p *Problem) [][]float64 {
	t.Helper()
	m := p.Mesh()
	rows := make([][]float64, m.NY)
	buf := make([]byte, m.RowBytes())
	for iy := range rows {
		if err := p.ValueRow(iy, solver.Source, buf); err != nil {
			t.Fatal(err)
		}
		for ix := range m.NX {
			rows[iy] = append(rows[iy], valueAt(m.DType, buf[ix*m.DType.Size():]))
		}
	}
	return rows
}

// The plain average needs equal spacings, no source, no derivative and no screening.
func TestPlainOperators(t *testing.T) {
	for _, c := range []struct {
		name  string
		plain bool
		do    func(*configs.Config)
	}{
		{"the preset", true, func(*configs.Config) {}},
		{"Neumann walls without a derivative", true, func(c *configs.Config) {
			c.Problem.Left, c.Problem.Bottom = "neumann(0)", "neumann(1 - 1)"
		}},
		{"another width", true, func(c *configs.Config) { c.Grid.Width = 7 }},
		{"the height of equal spacings in decimals", true, func(c *configs.Config) {
			c.Grid.NX, c.Grid.NY, c.Grid.Width, c.Grid.Height = 31, 11, 0.3, 0.1 // 0.3/30 != 0.1/10
		}},
		{"fixed points", true, func(c *configs.Config) { c.Problem.Fixed = "ix < 4" }},
		{"a fixed area", false, func(c *configs.Config) { c.Problem.Fixed = "x < 0.5" }},
		{"unequal spacings", false, func(c *configs.Config) { c.Grid.Height = 2 }},
		{"a source", false, func(c *configs.Config) { c.Problem.Source = "1" }},
		{"a derivative", false, func(c *configs.Config) { c.Problem.Top = "neumann(x)" }},
		{"screening", false, func(c *configs.Config) { c.Problem.Screening = "3" }},
	} {
		cfg := config(9, 5, "float64", configs.Problem{})
		c.do(&cfg)
		p := open(t, cfg)
		o := p.Operator()
		if o.Plain() != c.plain {
			t.Errorf("%s: plain %v", c.name, o.Plain())
		}
		if err := o.Check(solver.Float64); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if (o.Fixed != nil) != (cfg.Problem.Fixed != "") {
			t.Errorf("%s: fixed points %v", c.name, o.Fixed)
		}
	}
}

// The weights and the source follow from the formulas in the comment of numbers.
func TestOperatorFollowsTheFormulas(t *testing.T) {
	for _, dtype := range []string{"float32", "float64"} {
		cfg := config(9, 5, dtype, configs.Problem{Left: "neumann(2 + y)", Right: "neumann(3)", Top: "neumann(x)",
			Bottom: "neumann(-1)", Source: "1 + ix + 10*iy", Screening: "2"})
		cfg.Grid.Width, cfg.Grid.Height = 4, 1
		p := open(t, cfg)
		const hx, hy, k2 = 0.5, 0.25, 2.0
		const rho = hx * hx / (hy * hy)
		const d = 2*(1+rho) + k2*hx*hx
		h, q := (1+rho)/d, rho/(1+rho)
		if x, y := p.Spacings(); x != hx || y != hy {
			t.Errorf("spacings %v, %v", x, y)
		}
		o := p.Operator()
		if o.Scale != p.round(h) || o.Blend != p.round(q) {
			t.Errorf("scale %v, blend %v, want %v, %v", o.Scale, o.Blend, h, q)
		}
		for iy, row := range source(t, p) {
			for ix, got := range row {
				want := (1 + float64(ix) + 10*float64(iy)) * hx * hx / d
				switch ix {
				case 0:
					want += h * (1 - q) * 2 * hx * (2 + float64(iy)/4)
				case 8:
					want += h * (1 - q) * 2 * hx * 3
				}
				switch iy {
				case 0:
					want += h * q * 2 * hy * float64(ix) / 8
				case 4:
					want += h * q * 2 * hy * -1
				}
				if math.Abs(got-want) > 1e-15+1e-7*math.Abs(want-p.round(want)) && p.round(want) != got {
					t.Errorf("%s row %d, column %d: %v, want %v", dtype, iy, ix, got, want)
				}
			}
		}
	}
}

// The source of periodic rows and columns is a copy, and that of fixed walls is 0.
func TestSourceOfPeriodicAndFixedWalls(t *testing.T) {
	cfg := config(6, 5, "float64", configs.Problem{Left: "periodic", Right: "periodic", Source: "1 + ix + 10*iy"})
	cfg.Grid.Width = 8 // four spacings of 2 without screening: b = f
	b := source(t, open(t, cfg))
	equal(t, b, [][]float64{{0, 0, 0, 0, 0, 0}, {15, 12, 13, 14, 15, 12}, {25, 22, 23, 24, 25, 22},
		{35, 32, 33, 34, 35, 32}, {0, 0, 0, 0, 0, 0}})
	cfg = config(4, 5, "float64", configs.Problem{Top: "periodic", Bottom: "periodic", Source: "iy + 1"})
	cfg.Grid.Width = 6
	b = source(t, open(t, cfg))
	equal(t, b, [][]float64{{0, 4, 4, 0}, {0, 2, 2, 0}, {0, 3, 3, 0}, {0, 4, 4, 0}, {0, 2, 2, 0}})
}

// Walls that are not fixed start with problem.initial, or are copies.
func TestInitialFieldAtTheWalls(t *testing.T) {
	got := field(t, open(t, config(4, 5, "float32", configs.Problem{Left: "neumann(0)", Right: "20 + iy",
		Top: "30 + ix", Bottom: "neumann(1)", Initial: "100*iy + ix"})))
	equal(t, got, [][]float64{{30, 31, 32, 20}, {100, 101, 102, 21}, {200, 201, 202, 22}, {300, 301, 302, 23},
		{400, 401, 402, 24}})
	got = field(t, open(t, config(4, 5, "float64", configs.Problem{Left: "periodic", Right: "periodic", Top: "periodic",
		Bottom: "periodic", Initial: "100*iy + ix", Screening: "1"})))
	equal(t, got, [][]float64{{302, 301, 302, 301}, {102, 101, 102, 101}, {202, 201, 202, 201}, {302, 301, 302, 301},
		{102, 101, 102, 101}})
}

// MaxSource is the largest absolute value of the rows, whichever shortcut it takes.
func TestMaxSource(t *testing.T) {
	for _, c := range []configs.Problem{
		{}, {Source: "-3"}, {Source: "ix - 7*iy"}, {Bottom: "neumann(90)", Source: "1"},
		{Left: "neumann(iy)", Right: "neumann(-2*iy)"}, {Left: "neumann(5)", Top: "neumann(-ix)", Source: "y"},
	} {
		for _, dtype := range []string{"float32", "float64"} {
			p := open(t, config(600, 12, dtype, c))
			rows := source(t, p)
			for lo := range 12 {
				for hi := lo; hi <= 12; hi++ {
					want := 0.0
					for _, r := range rows[lo:hi] {
						for _, v := range r {
							want = max(want, math.Abs(v))
						}
					}
					if got, err := p.MaxSource(t.Context(), lo, hi); err != nil || got != want {
						t.Fatalf("%+v %s rows [%d, %d): %v, %v; want %v", c, dtype, lo, hi, got, err, want)
					}
				}
			}
		}
	}
}

// The unit of the sums follows from the field, and from the source where the operator is another one than the plain
// average.
func TestMagnitudeOfSources(t *testing.T) {
	plain := open(t, config(9, 9, "float64", configs.Problem{}))
	driven := open(t, config(9, 9, "float64", configs.Problem{Source: "1"}))
	for _, c := range []struct {
		p                 *Problem
		maxAbs, maxSource float64
		want              solver.Magnitude
	}{{plain, 1, 0, 0}, {plain, 3, 0, 2}, {plain, 0, 0, 0}, {driven, 1, 0, 1}, {driven, 3, 2, 4}, {driven, 0, 0.5, 0},
		{driven, 0, 0, 0}} {
		if got := c.p.Magnitude(c.maxAbs, c.maxSource); got != c.want {
			t.Errorf("%v, %v: %v, want %v", c.maxAbs, c.maxSource, got, c.want)
		}
	}
}

func TestBadOperators(t *testing.T) {
	for _, c := range []struct {
		nx, ny int
		dtype  string
		do     func(*configs.Config)
		want   string
	}{
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Source = "1/(x-0.5)" },
			`problem.source "1/(x-0.5)" at row 1, column 4 (x = 0.5, y = 0.25): +Inf; values must be finite`},
		{9, 5, "float32", func(c *configs.Config) { c.Problem.Source = "1e45" }, `problem.source "1e45": too large ` +
			`for float32 in the equation of row 1, column 1 (x = 0.125, y = 0.25)`},
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Left = "robin(1e308, 1e308)" },
			`problem.left "robin(1e308, 1e308)": too large for float64 in the equation of row 1, column 0 (x = 0, ` +
				`y = 0.25)`},
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Left = "robin(1e308, 0)" },
			`problem.left "robin(1e308, 0)": too large for float64 in the equation of row 1, column 0 (x = 0, ` +
				`y = 0.25)`},
		{9, 5, "float32", func(c *configs.Config) { c.Problem.Source, c.Problem.Left = "1e45", "neumann(1)" },
			`problem.source "1e45", problem.left "neumann(1)": too large for float32 in the equation of row 1, ` +
				`column 0 (x = 0, y = 0.25)`},
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Left = "neumann(1/(iy-1))" },
			`problem.left "neumann(1/(iy-1))" at row 1, column 0 (x = 0, y = 0.25): +Inf; values must be finite`},
		{9, 5, "float64", func(c *configs.Config) {
			c.Problem.Left, c.Problem.Top = "neumann(1/iy)",
				"neumann(log(x))"
		},
			`problem.left "neumann(1/iy)" at row 0, column 0 (x = 0, y = 0): +Inf; values must be finite`},
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Top = "neumann(log(x - 1/8))" },
			`problem.top "neumann(log(x - 1/8))" at row 0, column 1 (x = 0.125, y = 0): -Inf; values must be ` +
				`finite`},
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Left = "1 + neumann(0)" },
			`problem.left "1 + neumann(0)": column 5: unknown function neumann; launcher help expressions lists all; ` +
				`allowed are a number, an expression, a NumPy array (.npy), periodic, neumann(g), flux(q) and ` +
				`robin(h, g)`},
		{9, 5, "float32", func(c *configs.Config) { c.Grid.Height = 0.001 }, `grid.width 1, grid.height 0.001: the ` +
			`spacings 0.125 and 0.00025 differ so much that float32 cannot hold the ratio of their squares to 1 in ` +
			`1000; use other lengths or numbers of points, or grid.dtype float64`},
		{9, 5, "float64", func(c *configs.Config) { c.Grid.Height = 1e-9 }, `grid.width 1, grid.height 1e-09: the ` +
			`spacings 0.125 and 2.5e-10 differ so much that float64 cannot hold the ratio of their squares to 1 in ` +
			`1000; use other lengths or numbers of points`},
		{1025, 5, "float32", func(c *configs.Config) { c.Problem.Screening = "0.1" }, `problem.screening 0.1: with ` +
			`spacings of 0.0009766, rounding in float32 makes it 0; use a coarser mesh or a larger value, or ` +
			`grid.dtype float64`},
		{9, 5, "float64", func(c *configs.Config) { c.Problem.Screening = "1e-17" }, `problem.screening 1e-17: with ` +
			`spacings of 0.125, rounding in float64 makes it 0; use a coarser mesh or a larger value`},
		{9, 5, "float32", func(c *configs.Config) { c.Problem.Screening = "1e300" },
			`problem.screening 1e+300: too large for a spacing of 0.125`},
		{9, 5, "float32", func(c *configs.Config) { c.Problem.Source, c.Problem.Top = "1e21", "0" }, `problem: its ` +
			`largest absolute value is 0, and its source adds up to 3.906250078284677e+18 a sweep, ` +
			`3.906250078284677e+18 together; with ` +
			`float32 0 or 1e-12 to 1e+18 is allowed, because the norm squares it: scale the problem or use ` +
			`grid.dtype float64`},
	} {
		cfg := config(c.nx, c.ny, c.dtype, configs.Problem{})
		c.do(&cfg)
		p, err := New(t.Context(), cfg)
		if err == nil {
			err = p.Check(t.Context())
		} else if o := p.Operator(); o != (solver.Operator{}) {
			t.Errorf("%v: operator %+v", err, o)
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// The right-hand side can be had at fixed walls, where it need not be finite, and from a file.
func TestRightHandSideAtWalls(t *testing.T) {
	got := make([]float64, 5)
	p := open(t, config(5, 4, "float32", configs.Problem{Source: "3/ix + iy"}))
	if err := p.RightHandSide(2, 0, got); err != nil {
		t.Fatal(err)
	}
	if want := []float64{math.Inf(1), 5, 3.5, 3, 2.75}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
