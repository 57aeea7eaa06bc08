package reference

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"jacobi/solver"
)

// quadratic is u = 2x^2 - 3y^2 + xy + x - 2y + 1 on a mesh of width 1 and height 2, as the solution of
// -(u_xx + u_yy) + k2 u = f. The five points of the update and the mirror points of Neumann walls have no error for it.
type quadratic struct {
	mesh     solver.Mesh
	k2       float64
	weighted bool
}

func (q quadratic) spacings() (hx, hy float64) {
	return 1 / float64(q.mesh.NX-1), 2 / float64(q.mesh.NY-1)
}

func (q quadratic) u(ix, iy int) float64 {
	hx, hy := q.spacings()
	x, y := float64(ix)*hx, float64(iy)*hy
	return 2*x*x - 3*y*y + x*y + x - 2*y + 1
}

// operator returns the operator whose right-hand side is f, as docs/numerics.md derives it.
func (q quadratic) operator() solver.Operator {
	hx, hy := q.spacings()
	rho := hx * hx / (hy * hy)
	if q.weighted {
		return solver.Operator{Weighted: true, Values: q}
	}
	return solver.Operator{Scale: (1 + rho) / (2*(1+rho) + q.k2*hx*hx), Blend: rho / (1 + rho), Values: q}
}

func (q quadratic) Row(iy int, dst []byte) error {
	for x := range q.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(q.u(x, iy)))
	}
	return nil
}

func (q quadratic) ValueRow(iy int, k solver.Value, dst []byte) error {
	if k != solver.Source {
		for ix := range q.mesh.NX {
			binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(q.weight(ix, iy, k)))
		}
		return nil
	}
	hx, hy := q.spacings()
	d := 2*(1+hx*hx/(hy*hy)) + q.k2*hx*hx
	y := float64(iy) * hy
	for ix := range q.mesh.NX {
		x := float64(ix) * hx
		b := (2 + q.k2*q.u(ix, iy)) * hx * hx / d // f = -4 + 6 + k2 u
		slopeX, slopeY := 4*x+y+1, -6*y+x-2
		if ix == 0 {
			b -= 2 * hx * slopeX / d
		}
		if ix == q.mesh.NX-1 {
			b += 2 * hx * slopeX / d
		}
		if iy == 0 {
			b -= 2 * hx * hx / hy * slopeY / d
		}
		if iy == q.mesh.NY-1 {
			b += 2 * hx * hx / hy * slopeY / d
		}
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(b))
	}
	return nil
}

// weight returns a weight of a point. At a Neumann wall the one beyond it is 0 and the one opposite twice as large.
func (q quadratic) weight(ix, iy int, k solver.Value) float64 {
	hx, hy := q.spacings()
	rho := hx * hx / (hy * hy)
	place, last, w := ix, q.mesh.NX-1, 1/(2*(1+rho)+q.k2*hx*hx)
	if k == solver.North || k == solver.South {
		place, last, w = iy, q.mesh.NY-1, w*rho
	}
	if k == solver.East || k == solver.South {
		place = last - place
	}
	switch place {
	case 0:
		return 0
	case last:
		return 2 * w
	}
	return w
}

// A quadratic solution stays what it is, whichever walls give its values and which its derivatives.
func TestQuadraticSolution(t *testing.T) {
	for i := range 4 * 16 {
		k2, weighted, bits := float64(i/16%2*30), i >= 32, i%16
		wall := func(i int) solver.Wall { return solver.Wall(bits >> i & 1 * int(solver.Neumann)) }
		walls := solver.Walls{Left: wall(0), Right: wall(1), Top: wall(2), Bottom: wall(3)}
		t.Run(fmt.Sprintf("%v screening %v weighted %t", walls, k2, weighted), func(t *testing.T) {
			q := quadratic{solver.Mesh{NX: 13, NY: 18, DType: solver.Float64, Walls: walls}, k2, weighted}
			j, err := New(q.mesh, q.operator(), q, 5)
			if err != nil {
				t.Fatal(err)
			}
			if norm := j.Sweep().Norm(5); norm == 0 || norm > 1e-13 {
				t.Errorf("norm %v, want above 0 and at most 1e-13", norm)
			}
		})
	}
}

// wave is cos(2 pi x) cos(2 pi y) on a square whose opposite sides are periodic.
type wave struct{ mesh solver.Mesh }

func (w wave) Row(iy int, dst []byte) error {
	for x := range w.mesh.NX {
		at := func(i, n int) float64 { return math.Cos(2 * math.Pi * float64(i) / float64(n-2)) }
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(at(x, w.mesh.NX)*at(iy, w.mesh.NY)))
	}
	return nil
}

// A wave is a mode of the iteration on a mesh without ends: a sweep multiplies it by the cosine of a spacing. A fixed
// point in it stays.
func TestPeriodicSides(t *testing.T) {
	const n = 26
	mesh := solver.Mesh{NX: n, NY: n, DType: solver.Float64, Walls: solver.Walls{Left: solver.Periodic,
		Right: solver.Periodic, Top: solver.Periodic, Bottom: solver.Periodic}}
	j, err := New(mesh, solver.Operator{Fixed: onePoint{}}, wave{mesh}, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := append([]float64(nil), j.field...)
	j.Sweep()
	for i, v := range j.field {
		want := before[i] * math.Cos(2*math.Pi/(n-2))
		if i == 5*n+7 {
			want = before[i]
		}
		if math.Abs(v-want) > 1e-15 {
			t.Errorf("row %d column %d: %v, want %v", i/n, i%n, v, want)
		}
	}
}

// onePoint is row 5, column 7.
type onePoint struct{}

func (onePoint) FixedRow(iy int, dst []bool) error {
	clear(dst)
	dst[7] = iy == 5
	return nil
}
