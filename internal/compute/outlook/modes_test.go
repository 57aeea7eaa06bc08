package outlook

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
)

// field is a float64 mesh with given values and a given source.
type field struct {
	mesh   solver.Mesh
	op     solver.Operator
	value  func(ix, iy int) float64
	source func(ix, iy int) float64
}

func (f field) Mesh() solver.Mesh         { return f.mesh }
func (f field) Operator() solver.Operator { return f.op }

func (f field) Row(iy int, dst []byte) error {
	for ix := range f.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(f.value(ix, iy)))
	}
	return nil
}

func (f field) Values(iy int, cols []int, dst []float64) error {
	for i, ix := range cols {
		dst[i] = f.value(ix, iy)
	}
	return nil
}

func (f field) SourceValues(iy int, cols []int, dst []float64) error {
	clear(dst)
	for i, ix := range cols {
		if f.source != nil {
			dst[i] = f.source(ix, iy)
		}
	}
	return nil
}

// pairsOfWalls are the walls that the two ends of an axis can have.
var pairsOfWalls = [][2]solver.Wall{{solver.Dirichlet, solver.Dirichlet}, {solver.Neumann, solver.Neumann},
	{solver.Dirichlet, solver.Neumann}, {solver.Neumann, solver.Dirichlet}, {solver.Periodic, solver.Periodic}}

// A sweep multiplies each mode by 1-lambda, whatever the walls and the weights.
func TestModesAreEigenvectors(t *testing.T) {
	for _, op := range []solver.Operator{{}, {Scale: 0.5, Blend: 0.25}, {Scale: 0.46875, Blend: 0.75}} {
		for _, h := range pairsOfWalls {
			for _, v := range pairsOfWalls {
				mesh := solver.Mesh{NX: 9, NY: 12, DType: solver.Float64,
					Walls: solver.Walls{Left: h[0], Right: h[1], Top: v[0], Bottom: v[1]}}
				x, y := axes(mesh, op)
				for _, p := range x.waves {
					for _, q := range y.waves {
						f := field{mesh: mesh, op: op, value: func(ix, iy int) float64 { return p.at(ix) * q.at(iy) }}
						if err := sweepsBy(f, x, y, 2*x.weight*p.cosine+2*y.weight*q.cosine); err != nil {
							t.Fatalf("%+v, %+v: %v", op, mesh.Walls, err)
						}
					}
				}
				if want := min(waves, x.points()); len(x.waves) < want-1 {
					t.Errorf("%+v: %d modes in x, want about %d", mesh.Walls, len(x.waves), want)
				}
			}
		}
	}
}

// sweepsBy returns an error unless a sweep multiplies the field by factor.
func sweepsBy(f field, x, y axis, factor float64) error {
	j, err := reference.New(f.mesh, f.op, f, 0)
	if err != nil {
		return err
	}
	j.Sweep()
	rows := j.Rows(solver.Stripe{Lo: 0, Hi: f.mesh.NY})
	for iy := y.lo; iy <= y.hi; iy++ {
		for ix := x.lo; ix <= x.hi; ix++ {
			got := math.Float64frombits(binary.LittleEndian.Uint64(rows[8*(iy*f.mesh.NX+ix):]))
			if want := factor * f.value(ix, iy); math.Abs(got-want) > 1e-14 {
				return fmt.Errorf("row %d, column %d: %v, want %v", iy, ix, got, want)
			}
		}
	}
	return nil
}

// The modes are orthogonal: a field that is one of them has no component of another, and its own is 1. A source that
// is one of them makes a solution of 1/lambda in it.
func TestComponents(t *testing.T) {
	op := solver.Operator{Scale: 0.46875, Blend: 0.75}
	for _, h := range pairsOfWalls {
		for _, v := range pairsOfWalls {
			mesh := solver.Mesh{NX: 20, NY: 31, DType: solver.Float64,
				Walls: solver.Walls{Left: h[0], Right: h[1], Top: v[0], Bottom: v[1]}}
			x, y := axes(mesh, op)
			const p, q = 1, 2
			wave := func(ix, iy int) float64 { return x.waves[p].at(ix) * y.waves[q].at(iy) }
			modes, err := modesOf(t.Context(), field{mesh, op, wave, nil})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, mesh.Walls, "start", components(modes, func(m mode) float64 { return m.start }),
				p*len(y.waves)+q, 1)
			zero := func(int, int) float64 { return 0 }
			if modes, err = modesOf(t.Context(), field{mesh, op, zero, wave}); err != nil {
				t.Fatal(err)
			}
			got := components(modes, func(m mode) float64 { return m.solution * m.lambda })
			compare(t, mesh.Walls, "solution", got, p*len(y.waves)+q, 1)
			if start := -modes[0].start; modes[0].solution != start {
				t.Errorf("%v: the initial error is %v, and the solution %v", mesh.Walls, start, modes[0].solution)
			}
		}
	}
}

// components returns a value of each smooth mode.
func components(modes []mode, of func(mode) float64) (list []float64) {
	for _, m := range modes {
		if m.lambda < 1 {
			list = append(list, of(m))
		}
	}
	return list
}

func compare(t *testing.T, walls solver.Walls, what string, got []float64, one int, want float64) {
	t.Helper()
	for i, v := range got {
		expect := 0.0
		if i == one {
			expect = want
		}
		if math.Abs(v-expect) > 0.02 {
			t.Errorf("%v: %s of mode %d is %v, want %v", walls, what, i, v, expect)
		}
	}
}

// With fixed points inside there are no estimates, and the words say so.
func TestNoOutlookOfFixedPoints(t *testing.T) {
	f := field{mesh: solver.Mesh{NX: 20, NY: 20, DType: solver.Float32}, op: solver.Operator{Fixed: unread{}}}
	o, err := New(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if o.Known() || o.Expected(1e-8, 1000) != NoEstimate {
		t.Errorf("known %v, %q", o.Known(), o.Expected(1e-8, 1000))
	}
	if what, do := o.Warning(1e-20, 0); what != "" || do != "" {
		t.Errorf("warning %q, %q", what, do)
	}
	if end, ok := o.End(1e-8, 1000); ok {
		t.Errorf("end %+v", end)
	}
	// The norms alone still tell when the run ends.
	c := NewCourse(o, 1e-3, 1e9)
	for k := range 2000 {
		c.Add(k, math.Exp(-float64(k)/500))
	}
	if end, reason, ok := c.End(); !ok || reason != solver.Converged || end < 3000 || end > 5000 {
		t.Errorf("%d, %s, %v; want converged after about 3450", end, reason, ok)
	}
}

// unread is an operator's fixed points that nobody reads.
type unread struct{}

func (unread) FixedRow(int, []bool) error { return errors.New("read") }

// One sweep solves a mesh with a single free point, whose mode has the eigenvalue 1.
func TestOutlookOfOnePoint(t *testing.T) {
	for _, dtype := range []string{"float32", "float64"} {
		o := outlookOf(t, 3, 3, dtype, dirichlet)
		end, ok := o.End(1e-6, 1000)
		if !ok || end.Reason != solver.Converged || end.Sweeps > 4 || !(o.norm(0) > 0.1) {
			t.Errorf("%s: %+v, %v, first norm %v", dtype, end, ok, o.norm(0))
		}
	}
}
