package levels

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Coarser implements multigrid.Device.
func (d *Device) Coarser(l multigrid.Layout) (multigrid.Device, error) {
	c, err := New(l, d.threads, d.kernel)
	if err != nil {
		return nil, err // not c: a nil *Device is a non-nil interface
	}
	d.coarser = c
	return c, nil
}

// finestOf returns the finest level of the device of the next coarser mesh.
func (d *Device) finestOf(coarse multigrid.Device) (*level[float64], error) {
	c, ok := coarse.(*Device)
	if !ok {
		return nil, fmt.Errorf("cpu levels: %T is no device of this package", coarse)
	}
	if m, want := c.finest.Mesh, d.coarse[0].Mesh; m.NX != want.NX || m.NY != want.NY {
		return nil, fmt.Errorf("cpu levels: a mesh of %d x %d points, not %d x %d", m.NX, m.NY, want.NX,
			want.NY)
	}
	return c.finest, nil
}

// Interpolate implements multigrid.Device.
func (d *Device) Interpolate(ctx context.Context, coarse multigrid.Device) error {
	from, err := d.finestOf(coarse)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l := d.finest
	l.each(l.own, func(_ *pipe[float64], rows solver.Stripe) {
		between := newRows[float64](from.Mesh.NX, 1)[0]
		for y := rows.Lo; y < rows.Hi; y++ {
			interpolate(l, from, between, y)
		}
	})
	return nil
}

// interpolate sets row y of l to the field of a coarser mesh. between has as many values as a row of that.
func interpolate(l, from *level[float64], between []float64, y int) {
	at, w := l.Y.Between(y)
	weight, north := float64(w), from.u.at(at)
	south := north // its weight is 0
	if from.u.has(at + 1) {
		south = from.u.at(at + 1)
	}
	for x := range north {
		between[x] = math.FMA(weight, south[x]-north[x], north[x])
	}
	dst, t := l.u.at(y), between[:len(between)+1] // the value behind the row has weight 0
	fill := func(lo, hi int) {
		for x := lo; x < hi; x++ {
			k := l.columns.coarse[x]
			dst[x] = math.FMA(float64(l.columns.weight[x]), t[k+1]-t[k], t[k])
		}
	}
	lo, hi := l.Mesh.InteriorColumns()
	for _, r := range l.fixedIn(y) {
		fill(lo, r.Lo)
		lo = r.Hi
	}
	fill(lo, hi)
	repeat(dst, l.Mesh)
}

// RestrictSource implements multigrid.Device.
func (d *Device) RestrictSource(ctx context.Context, coarse multigrid.Device) error {
	to, err := d.finestOf(coarse)
	if err != nil {
		return err
	}
	l := d.finest
	if l.b.rows == nil || to.b.rows == nil {
		return errArray
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.each(d.layout.Below(), func(_ *pipe[float64], rows solver.Stripe) {
		scratch := newRows[float64](l.Mesh.NX, 2)
		for y := rows.Lo; y < rows.Hi; y++ {
			restrictSource(l, to.b.at(y), scratch[0], scratch[1], y)
		}
	})
	return nil
}

// restrictSource sets row y of a coarser mesh to the source of l. b and sums are scratch rows of l, 0 but for the swept
// columns.
func restrictSource(l *level[float64], dst, b, sums []float64, y int) {
	axis := l.Y
	first, n := axis.Around(y)
	rows := l.reach(solver.Stripe{Lo: first, Hi: first + n})
	lo, hi := l.Mesh.InteriorColumns()
	for k := rows.Lo; k < rows.Hi; k++ {
		copy(b[lo:hi], l.b.at(k)[lo:hi])
		for _, r := range l.fixedIn(k) {
			clear(b[r.Lo:r.Hi])
		}
		w := float64(axis.Weight(y, k))
		for x := lo; x < hi; x++ {
			if k == rows.Lo {
				sums[x] = w * b[x]
			} else {
				sums[x] = math.FMA(w, b[x], sums[x])
			}
		}
	}
	repeat(sums, l.Mesh)
	c := l.columns
	for x := c.lo; x < c.hi; x++ {
		v := sums[c.first[x]:cap(sums)][:multigrid.Taps]
		r := float64(c.taps[0][x]) * v[0]
		for k := 1; k < multigrid.Taps; k++ {
			r = math.FMA(float64(c.taps[k][x]), v[k], r)
		}
		dst[x] = math.FMA(l.Gain, r, 0)
	}
}
