package multigrid

import (
	"errors"
	"fmt"
	"math"

	"jacobi/solver"
)

// Point is the stencil of a point of a weighted operator, in symmetric form: C u - E u_east - .. = r. The couplings to
// the other four neighbours are those that these have to the point. C is 0 at a point that is not an unknown.
type Point struct{ C, E, S, SE, SW float64 }

// Factors solves the coarsest level of a weighted operator by block elimination in float64, with the blocks of Direct.
// With U[i] the couplings of block i to the next one, D[i] those within it, its diagonal positive, and L[i] the
// transposed U[i-1],
//
//	G[i] = L[i] S[i-1]^-1    S[0] = D[0]    S[i] = D[i] - G[i] U[i-1]
//
// All matrices are 0 in the rows and columns of points that are not unknowns, but for D, which is 1 on the diagonal.
type Factors struct {
	Blocking
	Inverse []float64 // S^-1 by block, row by row; of the border, the inverse of what is left of its equations
	Carry   []float64 // G by block, row by row; 0 for the first one
	// For a ring, and nil without a border: Ring as in Direct, and the couplings of the border to the last and to the
	// first block of the chain.
	Ring, Last, First []float64
}

// errLost is the error for equations that rounding has made such that many fields solve them.
var errLost = errors.New("the coefficients differ by so many powers of ten that rounding loses what determines the " +
	"solution; take a smaller contrast, or solver.method jacobi")

// NewFactors eliminates the equations of the coarsest level. at returns the stencil of an interior point. It fails if
// the equations have no solution.
func (l Layout) NewFactors(at func(x, y int) Point) (*Factors, error) {
	e := &elimination{Factors: Factors{Blocking: l.Blocking()}, at: at}
	err := e.eliminate()
	if errors.Is(err, errSingular) {
		err = errLost
	}
	if err != nil {
		return nil, fmt.Errorf("multigrid: coarsest level, %d x %d points: %w", e.mesh.NX, e.mesh.NY, err)
	}
	return &e.Factors, nil
}

// FactorsSize returns the slots, the blocks and the bytes of the matrices of NewFactors.
func (l Layout) FactorsSize() (slots, blocks int, bytes int64) {
	b := l.Blocking()
	matrices := 2 * b.Blocks
	if b.Chain < b.Blocks {
		matrices += b.Chain + 2
	}
	return b.Slots, b.Blocks, 8 * int64(matrices) * int64(b.Slots*b.Slots)
}

// Solve sets x to the solution for b, both by block and slot. b is overwritten, and 0 at points that are not unknowns.
// For the n blocks of the chain,
//
//	y[0] = b[0]                  y[i] = b[i] + G[i] y[i-1]
//	p[n-1] = S[n-1]^-1 y[n-1]    p[i] = S[i]^-1 y[i] + G[i+1]^T p[i+1]
//
// Without a border x is p. With one, its right-hand side becomes b + Last p[n-1] + First p[0], added in this order, the
// product of its matrix with that is x there, and then x[i] = p[i] + Ring[i] x[border]. A product of a matrix is a
// chain of fma in the order of slots, which begins with what it is added to, or with +0.
func (f *Factors) Solve(x, b []float64) {
	f.solveChain(x, b)
	if f.Ring == nil {
		return
	}
	n, m := f.Chain, f.Slots
	border, y := x[n*m:], b[n*m:]
	if n > 0 {
		multiply(y, f.Last, x[(n-1)*m:n*m])
		multiply(y, f.First, x[:m])
	}
	clear(border)
	multiply(border, f.Inverse[n*m*m:], y)
	for i := range n {
		multiply(x[i*m:(i+1)*m], f.Ring[i*m*m:], border)
	}
}

// solveChain sets x to p, and b to y.
func (f *Factors) solveChain(x, b []float64) {
	n, m := f.Chain, f.Slots
	for i := 1; i < n; i++ {
		multiply(b[i*m:(i+1)*m], f.Carry[i*m*m:], b[(i-1)*m:i*m])
	}
	for i := n - 1; i >= 0; i-- {
		p := x[i*m : (i+1)*m]
		clear(p)
		multiply(p, f.Inverse[i*m*m:], b[i*m:(i+1)*m])
		if i < n-1 {
			multiplyTransposed(p, f.Carry[(i+1)*m*m:], x[(i+1)*m:(i+2)*m])
		}
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

// elimination computes Factors. All ranks and devices use these, so they are the same on every processor: each
// operation is rounded once.
type elimination struct {
	Factors
	at func(x, y int) Point
}

func (e *elimination) eliminate() error {
	m, n := e.Slots*e.Slots, e.Chain
	e.Inverse, e.Carry = make([]float64, e.Blocks*m), make([]float64, e.Blocks*m)
	block := func(a []float64, i int) []float64 { return a[i*m : (i+1)*m] }
	for i := range n {
		s := block(e.Inverse, i)
		e.within(s, i)
		if i > 0 {
			before, g := e.between(i-1), block(e.Carry, i)
			product(g, transposed(before, e.Slots), block(e.Inverse, i-1), e.Slots, 1)
			product(s, g, before, e.Slots, -1)
		}
		if err := e.invert(s, i); err != nil {
			return err
		}
	}
	if n == e.Blocks {
		return nil
	}
	return e.closeRing()
}

// closeRing computes the matrices of a ring.
func (e *elimination) closeRing() error {
	n, m := e.Chain, e.Slots
	s := e.Inverse[n*m*m:]
	e.within(s, n)
	e.Ring, e.Last, e.First = make([]float64, n*m*m), make([]float64, m*m), e.between(n)
	if n == 0 { // the border is its own neighbour
		for j := range m {
			for k := range m {
				s[j*m+k] -= e.First[j*m+k] + e.First[k*m+j]
			}
		}
		return e.invert(s, n)
	}
	e.Last = transposed(e.between(n-1), m)
	x, b := make([]float64, n*m), make([]float64, n*m)
	for k := range m {
		clear(b)
		for j := range m {
			b[j] += e.First[k*m+j]
			b[(n-1)*m+j] += e.Last[k*m+j]
		}
		e.solveChain(x, b)
		for at, v := range x {
			e.Ring[at*m+k] = v
		}
	}
	product(s, e.Last, e.Ring[(n-1)*m*m:], m, -1)
	product(s, e.First, e.Ring, m, -1)
	return e.invert(s, n)
}

// within sets a matrix to D of a block.
func (e *elimination) within(s []float64, block int) {
	m := e.Slots
	for j := range m {
		p := e.point(block, j)
		if !(p.C > 0) {
			s[j*m+j] = 1
			continue
		}
		s[j*m+j] += p.C
		if k, ok := e.slot(j + 1); ok && e.point(block, k).C > 0 {
			v := p.E
			if e.columns {
				v = p.S
			}
			s[j*m+k] -= v
			s[k*m+j] -= v
		}
	}
}

// between returns the couplings of a block to the next one, row by row.
func (e *elimination) between(block int) []float64 {
	m := e.Slots
	u := make([]float64, m*m)
	next := (block + 1) % e.Blocks
	for j := range m {
		for d := -1; d <= 1; d++ {
			k, ok := e.slot(j + d)
			if !ok || !(e.point(block, j).C > 0 && e.point(next, k).C > 0) {
				continue
			}
			u[j*m+k] += e.coupling(block, next, j, k, d)
		}
	}
	return u
}

// coupling returns the coupling of a slot of a block to a slot of the next one, which lies d slots further.
func (e *elimination) coupling(block, next, slot, to, d int) float64 {
	p := e.point(block, slot)
	switch {
	case d == 0 && e.columns:
		return p.E
	case d == 0:
		return p.S
	case d > 0:
		return p.SE
	case e.columns: // the slot above in the next column, whose south-west is this one
		return e.point(next, to).SW
	}
	return p.SW
}

func (e *elimination) point(block, slot int) Point { return e.at(e.Point(block, slot)) }

// slot returns a slot that may lie beyond the ends of a block. ok is false if there is none.
func (e *elimination) slot(j int) (slot int, ok bool) {
	across := e.mesh.Walls.Left
	if e.columns {
		across = e.mesh.Walls.Top
	}
	if across == solver.Periodic {
		return (j + e.Slots) % e.Slots, true
	}
	return j, j >= 0 && j < e.Slots
}

// invert replaces the matrix of a block by its inverse, 0 for points that are not unknowns.
func (e *elimination) invert(s []float64, block int) error {
	if err := invert(s, e.Slots); err != nil {
		return err
	}
	for j := range e.Slots {
		if !(e.point(block, j).C > 0) {
			s[j*e.Slots+j] = 0
		}
	}
	return nil
}

// product adds sign times the product of two square matrices of m rows to a third one, the terms of an element in the
// order of the rows of b.
func product(dst, a, b []float64, m int, sign float64) {
	for j := range m {
		for k := range m {
			sum := dst[j*m+k]
			for i := range m {
				sum = math.FMA(sign*a[j*m+i], b[i*m+k], sum)
			}
			dst[j*m+k] = sum
		}
	}
}

// transposed returns a transposed square matrix of m rows.
func transposed(a []float64, m int) []float64 {
	t := make([]float64, len(a))
	for j := range m {
		for k := range m {
			t[k*m+j] = a[j*m+k]
		}
	}
	return t
}
