package problem

import (
	"math"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// config returns a run of nx by ny points with the given problem.
func config(nx, ny int, dtype string, p configs.Problem) configs.Config {
	c := configs.Default()
	c.Grid = configs.Grid{NX: nx, NY: ny, DType: dtype, Width: 1}
	c.Problem = p
	if p.Preset == "" {
		c.Problem.Preset = "dirichlet"
	}
	return c
}

func open(t testing.TB, c configs.Config) *Problem {
	t.Helper()
	p, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// field returns the whole field of p, row by row.
func field(t testing.TB, p *Problem) [][]float64 {
	t.Helper()
	m := p.Mesh()
	rows := make([][]float64, m.NY)
	buf := make([]byte, m.RowBytes())
	for iy := range rows {
		for i := range buf {
			buf[i] = 0xa5
		}
		if err := p.Row(iy, buf); err != nil {
			t.Fatal(err)
		}
		rows[iy] = make([]float64, m.NX)
		for ix := range rows[iy] {
			rows[iy][ix] = valueAt(m.DType, buf[ix*m.DType.Size():])
		}
	}
	return rows
}

func TestGTC2019(t *testing.T) {
	for _, size := range []int{3, 1024, 16384} {
		for _, dtype := range []string{"float32", "float64"} {
			p := open(t, config(5, size, dtype, configs.Problem{Preset: "gtc2019"}))
			if want := (solver.Mesh{NX: 5, NY: size, DType: p.mesh.DType,
				Walls: solver.WrapRows(true)}); p.Mesh() != want {
				t.Fatalf("mesh %+v, want %+v", p.Mesh(), want)
			}
			for iy, got := range field(t, p) {
				const pi32 = float32(math.Pi)
				side := float64(float32(math.Sin(2.0 * float64(pi32) * float64(iy) / float64(size-1))))
				if dtype == "float64" {
					side = elementary.Sin(2.0 * math.Pi * float64(iy) / float64(size-1))
				}
				if got[0] != side || got[4] != side || got[1] != 0 || got[2] != 0 || got[3] != 0 {
					t.Fatalf("%d rows, %s: row %d is %v, want sides %v and zeros", size, dtype, iy, got, side)
				}
			}
		}
	}
}

func TestCorners(t *testing.T) {
	parts := configs.Problem{Left: "10 + iy", Right: "20 + iy", Top: "30 + ix", Bottom: "40 + ix",
		Initial: "100 * iy + ix"}
	for _, dtype := range []string{"float32", "float64"} {
		got := field(t, open(t, config(4, 5, dtype, parts)))
		want := [][]float64{
			{10, 31, 32, 20},
			{11, 101, 102, 21},
			{12, 201, 202, 22},
			{13, 301, 302, 23},
			{14, 41, 42, 24},
		}
		equal(t, got, want)

		periodic := parts
		periodic.Top, periodic.Bottom = configs.Periodic, configs.Periodic
		want[0] = []float64{10, 301, 302, 20}
		want[4] = []float64{14, 101, 102, 24}
		equal(t, field(t, open(t, config(4, 5, dtype, periodic))), want)
	}
}

func equal(t *testing.T, got, want [][]float64) {
	t.Helper()
	for iy := range want {
		for ix := range want[iy] {
			if got[iy][ix] != want[iy][ix] {
				t.Errorf("row %d, column %d: %v, want %v", iy, ix, got[iy][ix], want[iy][ix])
			}
		}
	}
}

func TestDirichlet(t *testing.T) {
	p := open(t, config(4, 3, "float32", configs.Problem{}))
	equal(t, field(t, p), [][]float64{{0, 1, 1, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}})
	if p.Name() != "dirichlet" {
		t.Errorf("name %q", p.Name())
	}
	c := config(4, 3, "float32", configs.Problem{})
	c.Run.Name = "a plate"
	if name := open(t, c).Name(); name != "a plate" {
		t.Errorf("name %q", name)
	}
}

func TestBadProblems(t *testing.T) {
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{Left: "siny", Initial: "1 +"},
			`problem.left "siny": column 1: unknown name siny; did you mean sin?` + "\n" +
				`problem.initial "1 +": column 4: the expression ends too early; allowed are a number, an expression ` +
				`and a NumPy array (.npy)`},
		{configs.Problem{Initial: "absent.npy"}, `problem.initial "absent.npy": no such file or directory`},
	} {
		if _, err := New(t.Context(), config(9, 5, "float32", c.p)); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	for _, c := range []struct {
		nx, ny int
		dtype  string
		want   string
	}{
		{2, 5, "float32", "grid.nx 2, grid.ny 5: must be at least 3"},
		{5, 5, "half", `grid.dtype "half": allowed are float32 and float64`},
	} {
		_, err := New(t.Context(), config(c.nx, c.ny, c.dtype, configs.Problem{}))
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Between periodic sides x and y go from 0 to 1 over one period, and elsewhere over the mesh.
func TestCoordinatesOfPeriodicSides(t *testing.T) {
	for _, c := range []struct {
		sides  configs.Problem
		nx, ny float64
	}{
		{configs.Problem{}, 5, 7},
		{configs.Problem{Left: "periodic", Right: "periodic"}, 4, 7},
		{configs.Problem{Top: "periodic", Bottom: "periodic"}, 5, 6},
	} {
		c.sides.Initial = "100*x + y"
		rows := field(t, open(t, config(6, 8, "float64", c.sides)))
		for iy := 1; iy < 7; iy++ {
			for ix := 1; ix < 5; ix++ {
				if got, want := rows[iy][ix], 100*(float64(ix)/c.nx)+float64(iy)/c.ny; got != want {
					t.Errorf("%+v: row %d, column %d: %v, want %v", c.sides, iy, ix, got, want)
				}
			}
		}
	}
}
