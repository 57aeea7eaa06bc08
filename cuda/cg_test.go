package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// accelerated opens levels with their CG, and compares the memory of both with what was announced.
func accelerated(d *driver.Driver, o Options) leveltest.CGFactory {
	return func(l multigrid.Layout) (multigrid.Device, multigrid.CG, error) {
		v, err := NewLevels(d, l, o)
		if err != nil {
			return nil, nil, err
		}
		s, err := newCG(v, o.PTX)
		if err == nil && (v.Bytes() != LevelsBytes(l) || s.Bytes() != CGBytes(l)) {
			err = fmt.Errorf("%d and %d bytes are used, not %d and %d", v.Bytes(), s.Bytes(), LevelsBytes(l),
				CGBytes(l))
		}
		if err != nil {
			return nil, nil, errors.Join(err, v.Close())
		}
		return v, s, nil
	}
}

// runCG runs the conformance suite of conjugate gradients, and it with strips that do not touch the walls.
func runCG(t *testing.T, open leveltest.CGFactory) {
	leveltest.RunCG(t, open)
	for _, c := range leveltest.Sample(wide[1:6]) {
		t.Run(c.String(), func(t *testing.T) {
			if err := leveltest.CheckCG(t.Context(), c, open); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("terms", func(t *testing.T) { checkTerms(t, open) })
}

// The kernels of conjugate gradients pass the conformance suite, as machine code and as PTX.
func TestCG(t *testing.T) {
	d := need(t)
	for _, ptx := range []bool{false, true} {
		runCG(t, accelerated(d, Options{PTX: ptx}))
	}
}

// So they do on the CPU.
func TestCGOnFibers(t *testing.T) { runCG(t, accelerated(emulatedAlone(t), Options{})) }

// lonely is a field of 0 with one point in each group of the mesh that is not 0.
type lonely struct {
	mesh   solver.Mesh
	values map[[2]int]float64 // by the row and the column of a group
}

// Row implements solver.RowSource.
func (f lonely) Row(y int, dst []byte) error {
	clear(dst)
	if y%solver.GroupRows == 4 {
		for x := 1; x < f.mesh.NX-1; x += solver.GroupCols {
			v := f.values[[2]int{y / solver.GroupRows, x / solver.GroupCols}]
			binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
		}
	}
	return nil
}

// checkTerms compares exact sums of terms of all sizes, down to those that are cut or lost and up to those that are too
// large, with multigrid.Dot. A point alone in a group adds -v v', v and v' being its values in two fields.
func checkTerms(t *testing.T, open leveltest.CGFactory) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		magnitude   solver.Magnitude
		least, span int // exponents of the values
	}{{0, -130, 180}, {0, -160, 320}, {300, 180, 170}, {-400, -500, 140}} {
		mesh := solver.Mesh{NX: 253, NY: 97, DType: solver.Float64}
		z, p := lonely{mesh, map[[2]int]float64{}}, lonely{mesh, map[[2]int]float64{}}
		var want multigrid.Products
		for y := range mesh.NY / solver.GroupRows {
			for x := range mesh.NX / solver.GroupCols {
				value := func() float64 {
					return math.Ldexp(2*random.Float64()-1, c.least+random.IntN(c.span))
				}
				v, w := value(), value()
				z.values[[2]int{y, x}], p.values[[2]int{y, x}] = v, w
				for i, term := range []float64{-v * v, -v * w, -w * w} {
					want[i].Add(term, c.magnitude)
				}
			}
		}
		got, err := productsOf(t.Context(), mesh, c.magnitude, z, p, open)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%+v: products %v, want %v", c, got, want)
		}
	}
}

// productsOf returns the products of a change z and a direction p of a field of 0.
func productsOf(ctx context.Context, m solver.Mesh, e solver.Magnitude, z, p solver.RowSource,
	open leveltest.CGFactory) (products multigrid.Products, err error) {
	plan, err := multigrid.NewPlan(m, solver.Operator{Scale: 0.5, Blend: 0.5})
	if err != nil {
		return products, err
	}
	stripes, agglomerated := plan.Divide([]solver.Stripe{m.Interior()}, multigrid.AgglomeratedPoints)
	l := plan.LayoutOf(stripes, agglomerated, 0)
	l.Magnitude = e
	d, s, err := open(l)
	if err != nil {
		return products, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := errors.Join(d.Load(ctx, flat{}), s.Load(ctx, p), s.Keep(ctx)); err != nil {
		return products, err
	}
	row := make([]byte, m.RowBytes())
	for y := range m.NY {
		if err := z.Row(y, row); err != nil {
			return products, err
		}
		if err := d.SetRows(ctx, 0, multigrid.Unknowns, solver.Stripe{Lo: y, Hi: y + 1}, row); err != nil {
			return products, err
		}
	}
	return s.Products(ctx)
}
