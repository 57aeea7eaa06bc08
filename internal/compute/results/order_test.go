package results

import (
	"encoding/binary"
	"math"
	"testing"

	"jacobi/solver"
)

// smooth is the solution u = exp(x) cos(2y + 0.3) of -(u_xx + u_yy) + 5 u = 8 u on a mesh 2 wide and 1 high, with an
// electrode at 0.5 <= x <= 1, 0.25 <= y <= 0.75 that carries it.
type smooth struct {
	mesh   solver.Mesh
	hx, hy float64
}

func newSmooth(n int, walls solver.Walls) smooth {
	m := solver.Mesh{NX: 3*n + 1, NY: 4*n + 1, DType: solver.Float64, Walls: walls}
	return smooth{m, 2 / float64(m.NX-1), 1 / float64(m.NY-1)}
}

func (s smooth) Mesh() solver.Mesh                        { return s.mesh }
func (s smooth) Spacings() (float64, float64)             { return s.hx, s.hy }
func (s smooth) Screening() float64                       { return 5 }
func (s smooth) Plain() bool                              { return false }
func (s smooth) Weighted() bool                           { return false }
func (s smooth) Operator() solver.Operator                { return solver.Operator{Values: s, Fixed: s} }
func (s smooth) RegionFloats(int) bool                    { return false }
func (s smooth) RegionNames() []string                    { return nil }
func (s smooth) Axis() (float64, bool)                    { return 1, false }
func (s smooth) Turn(int, Place, []float64)               {}
func (s smooth) TurnOfWall(int, int, int) float64         { return 1 }
func (s smooth) RegionRow(int, []bool, []int)             {}
func (s smooth) ValueRow(int, solver.Value, []byte) error { return nil }
func (s smooth) place(ix, iy int) (x, y float64)          { return float64(ix) * s.hx, float64(iy) * s.hy }

func (s smooth) u(ix, iy int) float64 {
	x, y := s.place(ix, iy)
	return math.Exp(x) * math.Cos(2*y+0.3)
}

func (s smooth) Row(iy int, dst []byte) error {
	for ix := range s.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(s.u(ix, iy)))
	}
	return nil
}

func (s smooth) RightHandSide(iy, col int, dst []float64) error {
	for i := range dst {
		dst[i] = 8 * s.u(col+i, iy)
	}
	return nil
}

func (s smooth) FixedRow(iy int, dst []bool) error {
	nx, ny := s.mesh.NX-1, s.mesh.NY-1
	for ix := range dst {
		dst[ix] = 4*ix >= nx && 2*ix <= nx && 4*iy >= ny && 4*iy <= 3*ny
	}
	return nil
}

func (s smooth) Derivative(wall, iy, ix int) (float64, error) {
	x, y := s.place(ix, iy)
	return [...]float64{-s.u(ix, iy), s.u(ix, iy), 2 * math.Exp(x) * math.Sin(2*y+0.3),
		-2 * math.Exp(x) * math.Sin(2*y+0.3)}[wall], nil
}

// fluxes returns the fluxes of the walls, and that of the electrode.
func (s smooth) fluxes(t *testing.T) map[string]float64 {
	t.Helper()
	tally := New(s, s.mesh.Interior())
	rows := NewRows(s, s.mesh.Interior(), tally)
	row := make([]byte, s.mesh.RowBytes())
	for iy := range s.mesh.NY {
		if err := s.Row(iy, row); err != nil {
			t.Fatal(err)
		}
		if err := rows.AddRows(iy, row); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.End(nil); err != nil {
		t.Fatal(err)
	}
	r, err := Merge(s, []Part{tally.Part()})
	if err != nil || len(r.Regions) != 1 {
		t.Fatalf("%d regions, %v", len(r.Regions), err)
	}
	all := map[string]float64{"electrode": *r.Regions[0].Flux}
	for name, flux := range r.Flux {
		all[name] = *flux
	}
	return all
}

// The flux through every straight wall, its corners included, and through an electrode with straight sides is of second
// order: half the spacings make a quarter of the error.
func TestFluxesOfSecondOrder(t *testing.T) {
	across := (math.Sin(2.3) - math.Sin(0.3)) / 2 // the integral of cos(2y + 0.3)
	along := math.Exp(2) - 1                      // that of exp(x)
	want := map[string]float64{"left": -across, "right": math.Exp(2) * across, "top": 2 * math.Sin(0.3) * along,
		"bottom":    -2 * math.Sin(2.3) * along,
		"electrode": 3 * (math.Exp(1) - math.Exp(0.5)) * (math.Sin(1.8) - math.Sin(0.8)) / 2}
	for _, walls := range []solver.Walls{{}, {Left: solver.Neumann}, {Bottom: solver.Neumann},
		{Right: solver.Neumann, Top: solver.Neumann}} {
		coarse, fine := newSmooth(32, walls).fluxes(t), newSmooth(64, walls).fluxes(t)
		for name, exact := range want {
			first, second := math.Abs(coarse[name]-exact), math.Abs(fine[name]-exact)
			if slope := math.Log2(first / second); slope < 1.9 || slope > 2.1 {
				t.Errorf("%v: flux %s: errors %.3g and %.3g: slope %.3f, want 2", walls, name, first, second, slope)
			}
		}
	}
}

func (s smooth) WallFlux(wall, iy, ix int, _ float64) (float64, error) {
	return s.Derivative(wall, iy, ix)
}
func (s smooth) Materials() Materials    { return nil }
func (s smooth) Given() solver.FixedRows { return s.Operator().Fixed }

// Areas implements Problem.
func (s smooth) Areas() bool { return false }

// Joined implements Problem.
func (s smooth) Joined(_, _ [2]float64) bool { return false }
