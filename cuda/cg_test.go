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
		s, err := NewCG(v)
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

// checkCG compares the conjugate gradients of every second case with the definitions.
func checkCG(t *testing.T, open leveltest.CGFactory, cases []leveltest.Case) {
	for i := 0; i < len(cases); i += 2 {
		t.Run(cases[i].String(), func(t *testing.T) {
			if err := leveltest.CheckCG(t.Context(), cases[i], open); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Conjugate gradients pass the conformance suite, as machine code and as PTX.
func TestCG(t *testing.T) {
	d := need(t)
	for _, ptx := range []bool{false, true} {
		checkCG(t, accelerated(d, Options{PTX: ptx}), leveltest.WeightedCases())
	}
}

// And on the CPU.
func TestCGOnFibers(t *testing.T) {
	checkCG(t, accelerated(emulatedAlone(t), Options{}), someWeighted(0))
}

// The products are exact sums, as machine code and as PTX.
func TestProducts(t *testing.T) {
	d := need(t)
	for _, ptx := range []bool{false, true} {
		checkTerms(t, accelerated(d, Options{PTX: ptx}))
	}
}

// So they are on the CPU.
func TestProductsOnFibers(t *testing.T) { checkTerms(t, accelerated(emulatedAlone(t), Options{})) }

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

// even yields the numbers of points of the Laplace equation.
type even struct{ nx int }

// ValueRow implements solver.ValueRows.
func (e even) ValueRow(_ int, k solver.Value, dst []byte) error {
	v := map[solver.Value]float64{solver.Diagonal: 1, solver.EastFace: 0.25, solver.SouthFace: 0.25}[k]
	for x := range e.nx {
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
	}
	return nil
}

// productsOf returns the products of a change z and a direction p of a field of 0.
func productsOf(ctx context.Context, m solver.Mesh, e solver.Magnitude, z, p solver.RowSource,
	open leveltest.CGFactory) (products multigrid.Products, err error) {
	op := solver.Operator{Weighted: true, Ratio: 1, Values: even{m.NX}}
	plan, err := multigrid.NewPlan(m, op)
	if err != nil {
		return products, err
	}
	stripes, agglomerated := plan.Divide([]solver.Stripe{m.Interior()}, multigrid.AgglomeratedPoints)
	l := plan.LayoutOf(stripes, agglomerated, 0)
	l.Magnitude, l.Values = e, op.Values
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
