package multigrid

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// CG keeps what conjugate gradients need of level 0 besides its field u: the field x from before the cycle, and
// the direction p, the last change of the field. From the first cycle with them on its caller calls, in this order,
//
//	Keep   Up(0) of the device   Products   Step
//
// and copies the HaloDepth rows of Unknowns on both sides of the stripe before Products.
type CG interface {
	// Load fills p from rows, or with 0 if rows is nil.
	Load(ctx context.Context, rows solver.RowSource) error
	// Keep makes x the field of the device, which Up(0) then overwrites.
	Keep(ctx context.Context) error
	// Products returns sums over the rows that the rank owns. With z = u - x, and d as in Device but with b = 0 in d(z)
	// and d(p), they are
	//
	//	z d(z), z d(p), p d(p), z d(x), p d(x)
	//
	// where d is multiplied by C: only a weighted operator has a CG. With aggregates C d is worked out by differences,
	// as the restriction does (docs/numerics.md). The terms of a sum are those of groups (see solver.GroupRows). In the
	// rows of a group, from the top downwards, v0 to v3 are the values of the first and d0 to d3 those of the second
	// factor in its columns, d being 0 where no sweep updates. Each row adds fma(d1, v1, d0 v0) + fma(d3, v3, d2 v2) to
	// the term, which begins with 0.
	Products(ctx context.Context) (Products, error)
	// Step sets p = fma(a, z, b p) and u = x + p, in the rows that the rank owns and the HaloDepth rows beside them.
	Step(ctx context.Context, a, b float64) error
	// CopyRows copies rows [s.Lo, s.Hi) of p that the rank owns to dst: dense, NX values each.
	CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error
	// Largest returns the largest absolute value of p in OwnColumns of rows s that the rank owns; NaN if one is
	// NaN.
	Largest(ctx context.Context, s solver.Stripe) (float64, error)
	// Bytes returns the bytes of memory that the CG uses.
	Bytes() int64
}

// Products are the sums of CG.Products, in their order.
type Products [5]Dot

// The order of Products.
const (
	zz = iota
	zp
	pp
	zx
	px
)

// ProductSums is the number of sums in which Products travel.
const ProductSums = len(Products{}) * DotSums

// coefficients returns a and b with which the error of x + a z + b p has the least energy. The energy of an error e is
// e A e, where A v = -d(v) in the inner product of Products: that is the condition of conjugate gradients, here for a
// cycle that need be neither linear nor symmetric. Where rounding leaves no minimum, the result is the plain cycle. The
// sums count in units of the run's magnitude, so that no product of two of them leaves the range of float64.
func (s Products) coefficients() (a, b float64, err error) {
	var v [len(s)]float64
	for i, d := range s {
		v[i] = d.Float(0)
		if v[i] != v[i] {
			return 0, 0, fmt.Errorf("a scalar product is %v: the field has left the range of its type or was damaged",
				v[i])
		}
	}
	// The matrix is [azz azp; azp app], the right-hand side (v[zx], v[px]). Conversions keep products from being fused.
	azz, azp, app := -v[zz], -v[zp], -v[pp]
	det := float64(azz*app) - float64(azp*azp)
	switch {
	case !(azz > 0):
		return 1, 0, nil
	case !(det > float64(1e-12*float64(azz*app))):
		return v[zx] / azz, 0, nil
	}
	return (float64(app*v[zx]) - float64(azp*v[px])) / det, (float64(azz*v[px]) - float64(azp*v[zx])) / det, nil
}

// conjugate replaces the field after a cycle by the best one in the plane of the cycle's change and the last change.
func (it *Iteration) conjugate(ctx context.Context) error {
	if err := it.halos(ctx, 0, Unknowns); err != nil {
		return err
	}
	var own Products
	if err := it.timedCG(func() (err error) { own, err = it.CG.Products(ctx); return err }); err != nil {
		return fmt.Errorf("scalar products: %w", err)
	}
	sums := make([]solver.Sum, 0, ProductSums)
	for _, d := range own {
		s := d.sums()
		sums = append(sums, s[:]...)
	}
	total, err := it.sums.Total(ctx, solver.Contribution{Sums: sums})
	if err != nil {
		return fmt.Errorf("scalar products: %w", err)
	}
	for i := range own {
		own[i] = dotOf(total.Sums[i*DotSums : (i+1)*DotSums])
	}
	a, b, err := own.coefficients()
	if err != nil {
		return fmt.Errorf("%w; coefficients that differ by many powers of ten do that: take a smaller contrast, or "+
			"solver.method jacobi", err)
	}
	return it.timedCG(func() error { return it.CG.Step(ctx, a, b) })
}

// timedCG measures f as a part of a step of conjugate gradients.
func (it *Iteration) timedCG(f func() error) error {
	return it.watch.Do(solver.Step{Kind: solver.StepCG}, f)
}
