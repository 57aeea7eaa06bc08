package multigrid

import (
	"errors"
	"fmt"
	"math"

	"jacobi/solver"
)

// Point is the equation of a point of the coarsest level in symmetric form: C x - E x_east - .. = In r, and u = Out x.
// The couplings to the other four neighbours are those that these have to the point. C is 0 at a point that is not an
// unknown.
type Point struct{ C, E, S, SE, SW, In, Out float64 }

// CoarsestPoint returns the equation of a point of the coarsest level of an operator that is not weighted, times its
// share of the cell around it: half of it on a Neumann wall.
func (p *Plan) CoarsestPoint(x, y int) Point {
	m := p.Levels[len(p.Levels)-1].Mesh
	share := func(i, n int, low, high solver.Wall) float64 {
		if i == 0 && low == solver.Neumann || i == n-1 && high == solver.Neumann {
			return 0.5
		}
		return 1
	}
	sx, sy := share(x, m.NX, m.Walls.Left, m.Walls.Right), share(y, m.NY, m.Walls.Top, m.Walls.Bottom)
	return Point{C: sx * sy, E: sy * p.Coarsest.X, S: sx * p.Coarsest.Y, In: sx * sy, Out: 1}
}

// Factors solves the coarsest level by block elimination in float64. With U[i] the couplings of block i to the next
// one, D[i] those within it, its diagonal positive, and L[i] the transposed U[i-1],
//
//	G[i] = L[i] S[i-1]^-1    S[0] = D[0]    S[i] = D[i] - G[i] U[i-1]
//
// All matrices are 0 in the rows and columns of points that are not unknowns, but for D, which is 1 on the diagonal.
// All ranks and devices use these, so they are the same on every processor: each operation is rounded once.
type Factors struct {
	Blocking
	Values  []float64 // all of the following, one after the other
	inverse []float64 // S^-1 by block, row by row; of the border's own equations
	carry   []float64 // G by block; 0 for the first one
	// With a border alone: ring by block of the chain, and the couplings of the border to the last and to the first
	// block of the chain.
	ring, last, first []float64
	in, out           []float64 // In and Out by block and slot; 0 at points that are not unknowns
	centre            []float64 // C, alike
	x, b              []float64 // of Solve
}

func newFactors(b Blocking) Factors {
	n, m := b.Blocks*b.Slots, b.Slots*b.Slots
	f := Factors{Blocking: b, Values: make([]float64, b.values()), centre: make([]float64, n), x: make([]float64, n),
		b: make([]float64, n)}
	rest := f.Values
	take := func(n int) (some []float64) {
		some, rest = rest[:n], rest[n:]
		return some
	}
	f.inverse, f.carry = take(b.Blocks*m), take(b.Blocks*m)
	if b.hasBorder() {
		f.ring, f.last, f.first = take(b.Chain*m), take(m), take(m)
	}
	f.in, f.out = take(n), take(n)
	return f
}

// errSingular is the error for equations that many fields solve, or that rounding has made such.
var errSingular = errors.New("nothing determines the solution: no wall and no point is fixed, and the screening " +
	"is lost")

// errLost is the error for those of a weighted operator.
var errLost = errors.New("the coefficients differ by so many powers of ten that rounding loses what determines the " +
	"solution; take a smaller contrast, or solver.method jacobi")

// NewFactors eliminates the equations of the coarsest level. at returns that of an interior point: Plan.CoarsestPoint,
// unless the operator is weighted. It fails if the equations have no solution.
func (l Layout) NewFactors(at func(x, y int) Point) (*Factors, error) {
	e := &elimination{Factors: newFactors(l.Blocking())}
	for i := range e.x {
		e.points = append(e.points, at(e.Point(0, i)))
	}
	if l.Plan.Loose {
		e.hold()
	}
	for i, p := range e.points {
		if p.C > 0 {
			e.in[i], e.out[i], e.centre[i] = p.In, p.Out, p.C
		}
	}
	err := e.eliminate()
	if l.Plan.Weighted && errors.Is(err, errSingular) {
		err = errLost
	}
	if err != nil {
		return nil, fmt.Errorf("multigrid: coarsest level, %d x %d points: %w", e.mesh.NX, e.mesh.NY, err)
	}
	if l.Lever != nil {
		l.Lever.factors = &e.Factors
	}
	return &e.Factors, nil
}

// Solve solves the equations for the right-hand side r and calls set for each unknown.
func (f *Factors) Solve(r func(x, y int) float64, set func(x, y int, u float64)) {
	for i, in := range f.in {
		if f.b[i] = 0; in > 0 {
			f.b[i] = float64(r(f.Point(0, i)) * in)
		}
	}
	f.solve(f.x, f.b)
	for i, out := range f.out {
		if out > 0 {
			x, y := f.Point(0, i)
			set(x, y, float64(f.x[i]*out))
		}
	}
}

// solve sets x to the solution for b, both by block and slot. b is overwritten, and 0 at points that are not unknowns.
// For the n blocks of the chain,
//
//	y[0] = b[0]                  y[i] = b[i] + G[i] y[i-1]
//	p[n-1] = S[n-1]^-1 y[n-1]    p[i] = S[i]^-1 y[i] + G[i+1]^T p[i+1]
//
// Without a border x is p. With one, its right-hand side becomes b + last p[n-1] + first p[0], added in this order, the
// product of its matrix with that is x there, and then x[i] = p[i] + ring[i] x[border]. A product of a matrix is a
// chain of fma in the order of slots, which begins with what it is added to, or with +0.
func (f *Factors) solve(x, b []float64) {
	f.solveChain(x, b)
	if !f.hasBorder() {
		return
	}
	n, m := f.Chain, f.Slots
	y, border := b[n*m:], x[n*m:]
	if n > 0 {
		multiply(y, f.last, x[(n-1)*m:n*m])
		multiply(y, f.first, x[:m])
	}
	clear(border)
	multiply(border, f.of(f.inverse, n), y)
	for i := range n {
		multiply(x[i*m:(i+1)*m], f.of(f.ring, i), border)
	}
}

// solveChain sets x to p, and b to y.
func (f *Factors) solveChain(x, b []float64) {
	n, m := f.Chain, f.Slots
	for i := 1; i < n; i++ {
		multiply(b[i*m:(i+1)*m], f.of(f.carry, i), b[(i-1)*m:i*m])
	}
	for i := n - 1; i >= 0; i-- {
		p := x[i*m : (i+1)*m]
		clear(p)
		multiply(p, f.of(f.inverse, i), b[i*m:(i+1)*m])
		if i < n-1 {
			multiplyTransposed(p, f.of(f.carry, i+1), x[(i+1)*m:(i+2)*m])
		}
	}
}

// of returns the matrix of a block.
func (f *Factors) of(all []float64, block int) []float64 {
	n := f.Slots * f.Slots
	return all[block*n : (block+1)*n]
}

// multiply adds the product of a matrix and a vector to dst.
func multiply(dst, matrix, v []float64) {
	for j, sum := range dst {
		for k, c := range matrix[j*len(v):][:len(v)] {
			sum = math.FMA(c, v[k], sum)
		}
		dst[j] = sum
	}
}

// multiplyTransposed adds the product of a transposed matrix and a vector to dst.
func multiplyTransposed(dst, matrix, v []float64) {
	for j, sum := range dst {
		for k, c := range v {
			sum = math.FMA(matrix[k*len(v)+j], c, sum)
		}
		dst[j] = sum
	}
}
