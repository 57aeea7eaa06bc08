package problem

import (
	"fmt"
	"math"

	"jacobi/configs"
	"jacobi/solver"
)

// numbers are the weights of the five-point discretization of -(u_xx + u_yy) + k2 u = f with spacings hx and hy. With
// rho = (hx/hy)^2 and D = 2 (1 + rho) + k2 hx^2, a sweep is
//
//	new = h ((1-q) (W + E) + q (N + S)) + b      h = (1 + rho)/D    q = rho/(1 + rho)
//	b = f hx^2/D + g h (1-q) 2 hx (at a left or right Neumann wall) + g h q 2 hy (at a top or bottom one)
//
// where g is the outward derivative at the wall: the value beyond it is that of the mirror point plus 2 hx g or 2 hy g.
// All are computed in float64, in the order of newNumbers and Problem.sourceSpan, without fused operations.
type numbers struct {
	width, height float64
	hx, hy        float64
	screening     float64 // k2
	scale, blend  float64 // h and q
	perSource     float64 // hx^2/D
	perX, perY    float64 // the factors of g
}

// Spacings that differ by less than equalWithin, relative to their size, count as equal: width and height are decimal
// numbers, whose quotients are rounded.
const equalWithin = 1e-12

// Rounding to the field's type may change the ratio of the spacings, and the screening, by these relative amounts.
const (
	ratioWithin     = 1e-3
	screeningWithin = 1e-2
)

// newNumbers returns the numbers of a mesh. It refuses lengths and screenings that the type of the field cannot hold.
func newNumbers(m solver.Mesh, g configs.Grid, screening float64) (numbers, error) {
	nx, ny := intervals(m)
	n := numbers{width: g.Width, height: g.Height, screening: screening, hx: g.Width / nx}
	n.hy = g.Height / ny
	if g.Height == 0 || math.Abs(n.hy-n.hx) <= equalWithin*n.hx {
		n.hy = n.hx
	}
	if g.Height == 0 {
		n.height = n.hy * ny
	}
	ratio := n.hx / n.hy
	rho := float64(ratio * ratio)
	sum := 1 + rho
	square := float64(n.hx * n.hx)
	d := float64(2*sum) + float64(screening*square)
	n.scale, n.blend, n.perSource = sum/d, rho/sum, square/d
	n.perX = float64(n.scale*(1-n.blend)) * float64(2*n.hx)
	n.perY = float64(n.scale*n.blend) * float64(2*n.hy)
	return n, n.check(m.DType, g, rho)
}

// check returns an error if the rounded weights belong to a clearly different problem.
func (n numbers) check(d solver.DType, g configs.Grid, rho float64) error {
	better := ""
	if d == solver.Float32 {
		better = ", or grid.dtype float64"
	}
	h, q := rounded(d, n.scale), rounded(d, n.blend)
	if !(q > 0 && q < 1) || math.Abs(q/(1-q)/rho-1) > ratioWithin {
		return fmt.Errorf("grid.width %g, grid.height %g: the spacings %.4g and %.4g differ so much that %v cannot "+
			"hold the ratio of their squares to 1 in 1000; use other lengths or numbers of points%s", g.Width,
			n.height, n.hx, n.hy, d, better)
	}
	if n.screening == 0 {
		return nil
	}
	if !(h > 0) {
		return fmt.Errorf("problem.screening %g: too large for a spacing of %.4g", n.screening, n.hx)
	}
	if held := (1 + rho) * (1/h - 2) / (n.hx * n.hx); math.Abs(held/n.screening-1) > screeningWithin {
		return fmt.Errorf("problem.screening %g: with spacings of %.4g, rounding in %v makes it %.3g; use a "+
			"coarser mesh or a larger value%s", n.screening, n.hx, d, held, better)
	}
	return nil
}

// unit reports whether the weights are those of the plain average.
func (n numbers) unit() bool { return n.hx == n.hy && n.screening == 0 }

// rounded returns v rounded to type d.
func rounded(d solver.DType, v float64) float64 {
	if d == solver.Float32 {
		return float64(float32(v))
	}
	return v
}
