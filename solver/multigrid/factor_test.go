package multigrid_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/internal/compute/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// noise yields random values in [-1, 1), fixed walls included.
type noise struct{ mesh solver.Mesh }

func (n noise) Row(iy int, dst []byte) error {
	if n.mesh.PeriodicRows() {
		iy = 1 + (iy-1+n.mesh.NY-2)%(n.mesh.NY-2)
	}
	r := rand.New(rand.NewPCG(uint64(iy), 7))
	row := make([]float64, n.mesh.NX)
	for x := range row {
		row[x] = 2*r.Float64() - 1
	}
	if n.mesh.PeriodicColumns() {
		row[0], row[n.mesh.NX-1] = row[n.mesh.NX-2], row[1]
	}
	_, err := binary.Encode(dst, binary.LittleEndian, row)
	return err
}

// skipAlone leaves a test of one rank out of short tests, which are those of the race detector. Others have threads and
// ranks.
func skipAlone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN with -short: one rank races with nobody")
	}
}

// open opens the levels of a mesh on one rank and loads a field.
func open(t *testing.T, mesh solver.Mesh, op solver.Operator, rows solver.RowSource,
	e solver.Magnitude) (*levels.Device, multigrid.Layout) {
	t.Helper()
	plan, err := multigrid.NewPlan(mesh, op)
	if err != nil {
		t.Fatal(err)
	}
	stripes, agglomerated := plan.Divide([]solver.Stripe{mesh.Interior()}, multigrid.AgglomeratedPoints)
	l := plan.LayoutOf(stripes, agglomerated, 0)
	l.Values, l.Magnitude = op.Values, e
	if op.Fixed != nil {
		if l.Fixed, err = multigrid.FixedPoints(mesh, op.Fixed); err != nil {
			t.Fatal(err)
		}
	}
	d, err := levels.New(l, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.Load(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	return d, l
}

// norms does the given number of plain cycles and returns the norms of the fields from the initial one on.
func norms(t *testing.T, mesh solver.Mesh, op solver.Operator, cycles int) (norms []float64) {
	t.Helper()
	d, l := open(t, mesh, op, noise{mesh}, 0)
	o := options{Options: solver.Options{MaxIterations: cycles, OnNorms: func(_ int, n []float64) error {
		norms = append(norms, n...)
		return nil
	}}}
	if _, err := run(t.Context(), d, l, o); err != nil {
		t.Fatal(err)
	}
	return norms
}

// TestFactor checks the factor by which a cycle reduces the norm, from the third to the eighth cycle, for meshes of
// which few can be halved, walls of all kinds and spacings of all ratios.
func TestFactor(t *testing.T) {
	const periodic, neumann = solver.Periodic, solver.Neumann
	ring := solver.Walls{Top: periodic, Bottom: periodic}
	insulated := solver.Walls{Left: neumann, Right: neumann, Top: neumann, Bottom: neumann}
	everywhere := solver.Walls{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic}
	loose := solver.Operator{Scale: 0.5, Blend: 0.5, Loose: true}
	ratio := func(rho float64) solver.Operator { return solver.Operator{Scale: 0.5, Blend: rho / (1 + rho)} }
	for _, c := range []struct {
		nx, ny int
		walls  solver.Walls
		op     solver.Operator
		most   float64
	}{
		{257, 257, solver.Walls{}, solver.Operator{}, 0.055},
		{256, 256, solver.Walls{}, solver.Operator{}, 0.055},
		{256, 256, ring, solver.Operator{}, 0.055},
		{500, 500, solver.Walls{}, solver.Operator{}, 0.055},
		{999, 97, solver.Walls{}, solver.Operator{}, 0.055},
		{97, 999, ring, solver.Operator{}, 0.055},
		{4095, 31, solver.Walls{}, solver.Operator{}, 0.055},
		{1001, 31, ring, solver.Operator{}, 0.055},
		{300, 200, solver.Walls{Left: neumann}, solver.Operator{}, 0.055},
		{301, 203, solver.Walls{Left: neumann, Right: neumann, Top: neumann}, solver.Operator{}, 0.055},
		{300, 300, solver.Walls{}, ratio(2), 0.055},
		{300, 300, solver.Walls{}, ratio(10), 0.055},
		{300, 300, solver.Walls{Left: neumann}, ratio(0.01), 0.055},
		{2000, 20, solver.Walls{}, ratio(3), 0.055},
		{257, 257, everywhere, solver.Operator{Scale: 0.4999, Blend: 0.5}, 0.055},
		{129, 129, insulated, loose, 0.055},
		{513, 513, insulated, loose, 0.055},
		{999, 97, insulated, loose, 0.055},
		{130, 130, everywhere, loose, 0.055},
		{514, 514, everywhere, loose, 0.055},
	} {
		t.Run(fmt.Sprintf("%dx%d %v %v", c.nx, c.ny, c.walls, c.op.Blend), func(t *testing.T) {
			n := norms(t, solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64, Walls: c.walls}, c.op, 8)
			factor := math.Pow(n[8]/n[3], 1.0/5)
			t.Logf("factor %.4f, norms %.2e", factor, n)
			if !(factor < c.most) {
				t.Errorf("a cycle multiplies the norm by %.3f, want less than %g", factor, c.most)
			}
		})
	}
}
