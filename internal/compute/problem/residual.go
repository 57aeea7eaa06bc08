package problem

import (
	"math"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/rowmath"
)

// Residual has sums of the residual b - A u over points. A is the matrix of the equations in units of the source; b has
// the source, the walls' derivatives and the values of points that no sweep updates.
type Residual struct {
	Squares, Right float64 // of b - A u, and of b
	// Sum is that of the equations as they are multiplied for multigrid, and Hold what A u would add to it if u were 1.
	// Couplings of two points that sweeps update cancel out in both.
	Sum, Hold float64
}

// Residual returns those sums over the points of row iy that a sweep of a weighted operator updates. above, here and
// below are rows of the field u; one beyond a Neumann wall is nil.
func (p *Problem) Residual(iy int, above, here, below []float64) (r Residual, err error) {
	rows, frees := [3][]float64{above, here, below}, [3][]bool{}
	w := p.take(iy)
	defer p.give(w)
	walls := false // beside the row
	for i := range rows {
		y := iy - 1 + i
		if rows[i] == nil {
			rows[i], y = rows[2-i], iy+1-i
		}
		y, _ = p.mesh.Canonical(y)
		walls = walls || p.fixedWallRow(y)
		if frees[i], err = w.free(y); err != nil {
			return r, err
		}
	}
	iy, _ = p.mesh.Canonical(iy)
	st, err := w.stencil(iy)
	if err != nil {
		return r, err
	}
	last, nx := p.mesh.NX-1, p.mesh.NX
	open := p.fixed.none() && !p.porous && !p.turn.on && !walls
	unit := math.Ldexp(1, -p.unit)
	inUnits := func(ix int) float64 { return p.inEquation(float64(p.inMesh(iy, ix))/4, unit) }
	inside := inUnits(min(2, last))
	var residuals [chunk]float64
	for col := 0; col < nx; col += chunk {
		n := min(chunk, nx-col)
		if lo, hi := max(col, 2), min(col+n, last-1); lo < hi { // the neighbours lie beside them
			points := rowmath.Points{D: st.diagonal[lo:], B: st.b[lo:], Hold: st.hold[lo:], Along: st.alongX[lo-1:],
				Above: st.above.alongY[lo:], Below: st.alongY[lo:], U: here[lo-1:], North: rows[0][lo:],
				South: rows[2][lo:]}
			points.Residuals(residuals[lo-col : hi-col])
		}
		for i := 0; i < n; i++ {
			if end := min(n, last-1-col); open && i < end && col+i >= 2 {
				r.add(st, col+i, residuals[i:end], inside)
				if i = end; i == n {
					break
				}
			}
			if !st.free[col+i] {
				continue
			}
			ix, residual, scale := col+i, residuals[i], inside
			d, fixed, hold := st.diagonal[ix], st.b[ix], st.hold[ix]
			outer := ix < 2 || ix >= last-1
			if outer {
				residual, scale = float64(d*(fixed-float64(hold*here[ix]))), inUnits(ix)
			}
			if outer || !(st.free[ix-1] && st.free[ix+1] && frees[0][ix] && frees[2][ix]) {
				west, east := p.columnsBeside(ix)
				for _, n := range [...]struct {
					g, u float64
					free bool
				}{{st.alongX[max(ix-1, 0)], here[west], st.free[west]},
					{st.alongX[min(ix, last-1)], here[east], st.free[east]},
					{st.above.alongY[ix], rows[0][ix], frees[0][ix]}, {st.alongY[ix], rows[2][ix], frees[2][ix]}} {
					if outer {
						residual += float64(n.g * (n.u - here[ix]))
					}
					if !n.free {
						weight := rowmath.Ratio(n.g, d)
						fixed += float64(weight * n.u)
						hold += weight
					}
				}
			}
			r.Sum += float64(residual * scale)
			r.Hold += float64(float64(d*hold) * scale)
			if p.turn.on {
				radius := p.turn.radius(p.middle(iy, ix, 0, 0))
				d, residual = d/radius, residual/radius
			}
			b := float64(d * fixed)
			r.Squares += float64(residual * residual)
			r.Right += float64(b * b)
		}
	}
	return r, nil
}

// add adds what residuals of points from column lo on tell, which are free like all points beside them. scale is that
// of the equations as they are multiplied. It does the operations of Residual in the same order.
func (r *Residual) add(st *stencil, lo int, residuals []float64, scale float64) {
	n, sums := len(residuals), *r
	diagonal, right, holds := st.diagonal[lo:][:n], st.b[lo:][:n], st.hold[lo:][:n]
	for i, residual := range residuals {
		d := diagonal[i]
		b := float64(d * right[i])
		sums.Squares += float64(residual * residual)
		sums.Right += float64(b * b)
		sums.Sum += float64(residual * scale)
		sums.Hold += float64(float64(d*holds[i]) * scale)
	}
	*r = sums
}

// looks is about the number of points of a mesh at which AddRounding looks.
const looks = 1 << 16

// AddRounding adds by how much sweeps of multigrid, for rounding, miss the residuals of points of row iy to sums: that
// at column ix to sums[cells[ix]]. On large meshes it looks at one point in so many, which stands for all of them.
// Points on Neumann walls and in the outer two columns do not count.
func (p *Problem) AddRounding(iy int, above, here, below []float64, cells []int, sums []float64) error {
	if above == nil || below == nil {
		return nil
	}
	w := p.take(iy)
	defer p.give(w)
	iy, _ = p.mesh.Canonical(iy)
	st, err := w.stencil(iy)
	if err != nil {
		return err
	}
	every := max(1, p.mesh.NX*p.mesh.NY/looks)
	first := int(uint32(iy)*2654435769>>16) % every // scattered, so that no layer and no column is left out
	unit := math.Ldexp(1, -p.unit)
	equation := func(v float64) float64 { return p.inEquation(v, unit) }
	for ix := 2 + first; ix < p.mesh.NX-2; ix += every {
		c := equation(st.diagonal[ix])
		if c == 0 {
			continue
		}
		g := [4]float64{equation(st.alongX[ix-1]), equation(st.alongX[ix]), equation(st.above.alongY[ix]),
			equation(st.alongY[ix])}
		v := [4]float64{here[ix-1], here[ix+1], above[ix], below[ix]}
		u, b := here[ix], float64(c*st.b[ix])
		sum := kernel.WeightedUpdate(v[0], v[1], v[2], v[3], b, g[0], g[1], g[2], g[3])
		residual := b - float64(float64(c*st.hold[ix])*u)
		for i := range g {
			residual += float64(g[i] * (v[i] - u))
		}
		sums[cells[ix]] += float64(every) * (float64(c*math.FMA(1/c, sum, -u)) - residual)
	}
	return nil
}

// columnsBeside returns the columns that hold the values west and east of column ix, which a sweep updates.
func (p *Problem) columnsBeside(ix int) (west, east int) {
	last := p.mesh.NX - 1
	west, east = ix-1, ix+1
	switch {
	case p.mesh.PeriodicColumns() && ix == 1:
		west = last - 1
	case west < 0:
		west = 1
	}
	switch {
	case p.mesh.PeriodicColumns() && ix == last-1:
		east = 1
	case east > last:
		east = last - 1
	}
	return west, east
}
