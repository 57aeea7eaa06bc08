package leveltest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// CGFactory opens a device and its CG. The suite closes the device.
type CGFactory func(l multigrid.Layout) (multigrid.Device, multigrid.CG, error)

// device opens a device alone.
func (f CGFactory) device(l multigrid.Layout) (multigrid.Device, error) {
	d, _, err := f(l)
	return d, err
}

// acceleratedRanks returns the ranks of a case with the CG of each.
func acceleratedRanks(ctx context.Context, c Case, plan *multigrid.Plan, op solver.Operator, v values,
	open CGFactory) (*ranks, []multigrid.CG, error) {
	var accelerators []multigrid.CG
	r, err := newRanks(ctx, c, plan, op, v, func(l multigrid.Layout) (multigrid.Device, error) {
		d, s, err := open(l)
		accelerators = append(accelerators, s)
		return d, err
	})
	return r, accelerators, err
}

// CheckCG compares, for a weighted operator, the scalar products and the steps of conjugate gradients of the ranks of a
// case with the definitions of multigrid.CG, bit by bit.
func CheckCG(ctx context.Context, c Case, open CGFactory) error {
	plan, op, v, err := c.problem()
	if err != nil {
		return err
	}
	ranks, accelerators, err := acceleratedRanks(ctx, c, plan, op, v, open)
	if err != nil {
		return err
	}
	defer ranks.close()
	cycles, err := reference.NewWeighted(plan, op, v, c.Magnitude)
	if err != nil {
		return err
	}
	if err := ranks.setUp(ctx, cycles); err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	o := &cgOracle{values: v, cycles: cycles, p: make([]float64, len(v.field))}
	for k, s := range accelerators {
		var direction solver.RowSource // the last rank begins with a direction of 0 that was saved
		if k == len(accelerators)-1 {
			direction = solver.Zeros{}
		}
		if err := s.Load(ctx, direction); err != nil {
			return fmt.Errorf("rank %d: load: %w", k, err)
		}
	}
	for k, coefficients := range [][2]float64{{1.25, 0}, {0.875, -0.3}, {1.1, 0.2}} {
		if err := ranks.conjugate(ctx, accelerators, o, coefficients); err != nil {
			return fmt.Errorf("cycle %d: %w", k, err)
		}
	}
	return nil
}

// conjugate does a cycle and a step, and compares them with the oracle.
func (r *ranks) conjugate(ctx context.Context, accelerators []multigrid.CG, o *cgOracle, by [2]float64) error {
	x, err := r.field(ctx, o)
	if err != nil {
		return err
	}
	if err := r.down(ctx); err != nil {
		return err
	}
	for _, s := range accelerators {
		if err := s.Keep(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(r.up(ctx), r.swap(ctx, 0, multigrid.Unknowns)); err != nil {
		return err
	}
	u, err := r.field(ctx, o)
	if err != nil {
		return err
	}
	var got multigrid.Products
	for k, s := range accelerators {
		own, err := s.Products(ctx)
		if err != nil {
			return fmt.Errorf("rank %d: products: %w", k, err)
		}
		for i := range got {
			got[i].Merge(own[i])
		}
	}
	if want := o.products(x, u); got != want {
		return fmt.Errorf("products %v, want %v", got, want)
	}
	for k, s := range accelerators {
		if err := s.Step(ctx, by[0], by[1]); err != nil {
			return fmt.Errorf("rank %d: step: %w", k, err)
		}
	}
	o.step(x, u, by[0], by[1])
	after, err := r.field(ctx, o)
	if err != nil {
		return err
	}
	if !slices.Equal(after, x) {
		return errors.New("the field after the step differs")
	}
	return r.comparesDirection(ctx, accelerators, o)
}

// field returns the whole field, with the walls of the initial one.
func (r *ranks) field(ctx context.Context, o *cgOracle) ([]float64, error) {
	f, nx := slices.Clone(o.values.field), o.values.mesh.NX
	for k, d := range r.devices {
		s := r.stripes[0][k]
		buf := make([]byte, 8*s.Rows()*nx)
		if err := d.CopyRows(ctx, 0, multigrid.Unknowns, s, buf); err != nil {
			return nil, fmt.Errorf("rank %d: copy rows: %w", k, err)
		}
		for i := range s.Rows() * nx {
			f[s.Lo*nx+i] = math.Float64frombits(binary.LittleEndian.Uint64(buf[8*i:]))
		}
	}
	o.repeat(f)
	return f, nil
}

// comparesDirection compares p of all ranks with that of the oracle.
func (r *ranks) comparesDirection(ctx context.Context, accelerators []multigrid.CG, o *cgOracle) error {
	nx := o.values.mesh.NX
	for k, s := range accelerators {
		own := r.stripes[0][k]
		got, want := make([]byte, 8*own.Rows()*nx), make([]byte, 0, 8*own.Rows()*nx)
		for _, v := range o.p[own.Lo*nx : own.Hi*nx] {
			want = binary.LittleEndian.AppendUint64(want, math.Float64bits(v))
		}
		if err := s.CopyRows(ctx, own, got); err != nil {
			return fmt.Errorf("rank %d: copy rows: %w", k, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("rank %d: the direction differs", k)
		}
		largest := largestOf([][]float64{o.p[own.Lo*nx : own.Hi*nx]})
		if v, err := s.Largest(ctx, own); err != nil || v != largest {
			return fmt.Errorf("rank %d: largest value of the direction: %v (%w), want %v", k, v, err, largest)
		}
	}
	return nil
}

// cgOracle computes products and steps in the plainest way.
type cgOracle struct {
	values values
	cycles *reference.Weighted
	p      []float64
}

// repeat makes periodic rows and columns copies of what they stand for.
func (o *cgOracle) repeat(f []float64) {
	m := o.values.mesh
	if m.PeriodicColumns() {
		for y := range m.NY {
			f[y*m.NX], f[y*m.NX+m.NX-1] = f[y*m.NX+m.NX-2], f[y*m.NX+1]
		}
	}
	if m.PeriodicRows() {
		copy(f[:m.NX], f[(m.NY-2)*m.NX:])
		copy(f[(m.NY-1)*m.NX:], f[m.NX:2*m.NX])
	}
}

// products returns the sums for the field x before a cycle and the field u after it.
func (o *cgOracle) products(x, u []float64) (sums multigrid.Products) {
	z := make([]float64, len(x))
	for i := range z {
		z[i] = u[i] - x[i]
	}
	dz, dp, dx := o.cycles.Defect(z, false), o.cycles.Defect(o.p, false), o.cycles.Defect(x, true)
	for i, f := range [][2][]float64{{z, dz}, {z, dp}, {o.p, dp}, {z, dx}, {o.p, dx}} {
		o.add(&sums[i], f[0], f[1])
	}
	return sums
}

// add adds the groups of the product of v and d.
func (o *cgOracle) add(sum *multigrid.Dot, v, d []float64) {
	m, e := o.values.mesh, o.values.magnitude
	at := func(f []float64, y, x int) float64 {
		if x >= m.NX {
			return 0
		}
		return f[y*m.NX+x]
	}
	for top := 0; top < m.NY; top += solver.GroupRows {
		for x := 0; x < m.NX; x += 4 {
			term := 0.0
			for y := top; y < min(m.NY, top+solver.GroupRows); y++ {
				left := math.FMA(at(d, y, x+1), at(v, y, x+1), at(d, y, x)*at(v, y, x))
				right := math.FMA(at(d, y, x+3), at(v, y, x+3), at(d, y, x+2)*at(v, y, x+2))
				term += left + right
			}
			sum.Add(term, e)
		}
	}
}

// step makes x the field after the step, and changes p.
func (o *cgOracle) step(x, u []float64, a, b float64) {
	for i := range x {
		o.p[i] = math.FMA(a, u[i]-x[i], b*o.p[i])
		x[i] += o.p[i]
	}
}
