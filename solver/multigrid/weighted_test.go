package multigrid_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"jacobi/internal/compute/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/multigrid"
)

// material is the problem -div(a grad u) = 1 on a square of n x n points with u = 0 on all walls. a belongs to points;
// between two of them it is the harmonic mean.
type material struct {
	n int
	a []float64 // by row and column
}

func newMaterial(n int, a func(y, x int) float64) material {
	m := material{n: n, a: make([]float64, n*n)}
	for i := range m.a {
		m.a[i] = a(i/n, i%n)
	}
	return m
}

func (m material) mesh() solver.Mesh { return solver.Mesh{NX: m.n, NY: m.n, DType: solver.Float64} }

func (m material) operator() solver.Operator {
	least, most := math.Inf(1), 0.
	for _, a := range m.a {
		if most = max(most, a); a > 0 {
			least = min(least, a)
		}
	}
	return solver.Operator{Weighted: true, Ratio: 1, Contrast: most / least, Values: m}
}

// face returns the coupling of a point to the one dy rows below and dx columns behind it.
func (m material) face(y, x, dy, dx int) float64 {
	if y < 0 || x < 0 || y+dy >= m.n || x+dx >= m.n {
		return 0
	}
	v, w := m.a[y*m.n+x], m.a[(y+dy)*m.n+x+dx]
	if v+w == 0 {
		return 0
	}
	return 2 * v * w / (v + w)
}

// magnitude is that of the source, which is at most 1/((n-1)^2 a) for the least a.
func (m material) magnitude() solver.Magnitude {
	h := 1 / float64(m.n-1)
	return solver.MagnitudeOf(h*h/slices.Min(m.a)) + multigrid.WeightedHeadroom
}

// Row implements solver.RowSource.
func (m material) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}

// ValueRow implements solver.ValueRows.
func (m material) ValueRow(y int, k solver.Value, dst []byte) error {
	_, exponent := math.Frexp(4 * slices.Max(m.a))
	h := 1 / float64(m.n-1)
	for x := range m.n {
		east, south := m.face(y, x, 0, 1), m.face(y, x, 1, 0)
		diagonal := (m.face(y, x-1, 0, 1) + east) + (m.face(y-1, x, 1, 0) + south)
		v := 0.0
		switch k {
		case solver.Source:
			if diagonal > 0 {
				v = h * h / diagonal
			}
		case solver.Diagonal:
			v = math.Ldexp(diagonal, -exponent)
		case solver.EastFace:
			v = math.Ldexp(east, -exponent)
		case solver.SouthFace:
			v = math.Ldexp(south, -exponent)
		}
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
	}
	return nil
}

// solve does cycles, with conjugate gradients where they begin, until the norm has fallen to 1e-8 of the first one.
func solve(t *testing.T, m material) solver.Result { return solveBy(t, m, m.operator()) }

func solveBy(t *testing.T, m material, op solver.Operator) solver.Result {
	t.Helper()
	d, l := open(t, m.mesh(), op, m, m.magnitude())
	grid, cg := multigrid.Grid{Device: d, Layout: l}, levels.NewCG(d)
	if err := errors.Join(grid.SetUp(t.Context()), cg.Load(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	o := options{Options: solver.Options{MaxIterations: 200, Goal: solver.Goal{Relative: 1e-8}}}
	o.multigrid.CG = cg
	r, err := run(t.Context(), d, l, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkerboard has cells x cells squares with the coefficients 1 and contrast in turn.
func checkerboard(n, cells int, contrast float64) material {
	return newMaterial(n, func(y, x int) float64 {
		if (x*cells/(n-1)+y*cells/(n-1))%2 == 1 {
			return contrast
		}
		return 1
	})
}

// kind is a kind of coefficient, between 1 and a contrast.
type kind struct {
	name string
	a    func(n int, contrast float64) material
	want [2]int // cycles at 129 x 129 points for contrasts of 100 and 10^4
}

// kinds are those that are hard for multigrid.
var kinds = []kind{
	{"1", func(n int, _ float64) material { return checkerboard(n, 1, 1) }, [2]int{6, 6}},
	{"checkerboard of 16 x 16", func(n int, c float64) material { return checkerboard(n, 16, c) }, [2]int{7, 7}},
	{"checkerboard of 3 x 3 points", func(n int, c float64) material {
		return newMaterial(n, func(y, x int) float64 { return choose((x/3+y/3)%2 == 1, c) })
	}, [2]int{8, 17}},
	{"60 inclusions", inclusions, [2]int{6, 6}},
	{"layers along rows", func(n int, c float64) material {
		return newMaterial(n, func(y, _ int) float64 { return choose(y/5%2 == 1, c) })
	}, [2]int{5, 6}},
	{"layers along columns", func(n int, c float64) material {
		return newMaterial(n, func(_, x int) float64 { return choose(x/5%2 == 1, c) })
	}, [2]int{5, 6}},
	{"barriers", func(n int, c float64) material {
		return newMaterial(n, func(y, x int) float64 { return choose(y%23 == 9 || x%31 == 15, 1/c) })
	}, [2]int{5, 5}},
	{"channels", func(n int, c float64) material {
		return newMaterial(n, func(y, x int) float64 {
			row, column := y%23 == 9 && x >= 5 && x < n-5, x%31 == 15 && y >= 5 && y < n-5
			return choose(row || column, c)
		})
	}, [2]int{7, 10}},
	{"spiral", spiral, [2]int{10, 17}},
	{"random points", func(n int, c float64) material {
		r := rand.New(rand.NewPCG(1, 2))
		return newMaterial(n, func(int, int) float64 { return choose(r.IntN(2) == 1, c) })
	}, [2]int{14, 23}},
	{"lognormal, sigma 2 and 3", func(n int, c float64) material {
		r := rand.New(rand.NewPCG(1, 2))
		return newMaterial(n, func(int, int) float64 { return math.Exp((1 + math.Log10(c)/2) * r.NormFloat64()) })
	}, [2]int{10, 15}},
}

func choose(second bool, value float64) float64 {
	if second {
		return value
	}
	return 1
}

// inclusions are circles with coefficients between 1/contrast and contrast.
func inclusions(n int, contrast float64) material {
	r := rand.New(rand.NewPCG(1, 2))
	m := newMaterial(n, func(int, int) float64 { return 1 })
	for range 60 {
		cx, cy, radius := r.Float64(), r.Float64(), 0.01+0.05*r.Float64()
		v := math.Pow(contrast, 2*r.Float64()-1)
		for i := range m.a {
			if math.Hypot(float64(i%n)/float64(n-1)-cx, float64(i/n)/float64(n-1)-cy) < radius {
				m.a[i] = v
			}
		}
	}
	return m
}

// spiral is one point wide.
func spiral(n int, contrast float64) material {
	m := newMaterial(n, func(int, int) float64 { return 1 })
	for i := range 40 * n {
		t := float64(i) / float64(40*n-1)
		radius, angle := 0.02+0.44*t, 8*math.Pi*t
		at := func(v float64) int { return int(math.Round((0.5 + radius*v) * float64(n-1))) }
		m.a[at(math.Sin(angle))*n+at(math.Cos(angle))] = contrast
	}
	return m
}

// block fixes the points of a block.
type block struct{ n int }

// FixedRow implements solver.FixedRows.
func (b block) FixedRow(y int, dst []bool) error {
	for x := range dst {
		dst[x] = 4*y > b.n && 2*y < b.n && 3*x > b.n && 2*x < b.n
	}
	return nil
}

// Cycles do not depend on whether a column beside a wall, or beside fixed points, has points of the next level. Every
// second column has some, and the last one.
func TestCyclesBesideWalls(t *testing.T) {
	for n := 125; n <= 132; n++ {
		m := checkerboard(n, 1, 1)
		if s := solve(t, m); s.Iterations != 6 {
			t.Errorf("%d x %d points: %d cycles, want 6", n, n, s.Iterations)
		}
		op := m.operator()
		op.Fixed = block{n}
		if s := solveBy(t, m, op); s.Iterations != 6 {
			t.Errorf("%d x %d points, a block is fixed: %d cycles, want 6", n, n, s.Iterations)
		}
	}
}

// TestWeightedCycles counts cycles. CYCLES=257 prints those of 257 x 257 points.
func TestWeightedCycles(t *testing.T) {
	skipAlone(t)
	n, asserts := 129, true
	if v := os.Getenv("CYCLES"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
		asserts = false
	}
	for _, k := range kinds {
		var got [2]int
		for i, contrast := range []float64{100, 1e4} {
			s := solve(t, k.a(n, contrast))
			got[i] = s.Iterations
			if s.Reason != solver.Converged {
				t.Errorf("%s, contrast %g: %d cycles (%v), norm %g", k.name, contrast, s.Iterations, s.Reason, s.Norm)
			}
		}
		if !asserts {
			t.Logf("%d x %d points, %s: %v cycles", n, n, k.name, got)
		} else if got != k.want {
			t.Errorf("%s: %v cycles, want %v", k.name, got, k.want)
		}
	}
}

// A run that would go over to aggregates fails before it takes memory for them if there is no room.
func TestAggregatesNeedRoom(t *testing.T) {
	m := spiral(129, 1e6)
	d, l := open(t, m.mesh(), m.operator(), m, m.magnitude())
	full := errors.New("no room")
	var asked []int64
	grid := multigrid.Grid{Device: d, Layout: l, Stripes: [][]solver.Stripe{l.Stripes}, Room: func(bytes int64) error {
		asked = append(asked, bytes)
		return full
	}}
	if err := grid.SetUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	sums := solver.NewReductions(exchangetest.NewReducer(1), &solver.Watch{})
	_, err := solver.Drive(t.Context(), multigrid.New(grid, sums, multigrid.Options{}), sums,
		solver.Options{MaxIterations: 200, Goal: solver.Goal{Relative: 1e-8}, Magnitude: l.Magnitude})
	const want = "cycle 5: aggregates, for coefficients that are hard for coarser meshes: no room"
	if !errors.Is(err, full) || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	if !slices.Equal(asked, []int64{(76 + 32) * 129 * 129}) {
		t.Errorf("room was asked for %v bytes, want 108 for each point, once", asked)
	}
}
