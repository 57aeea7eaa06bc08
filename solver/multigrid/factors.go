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
	matrices
	Carry []float64 // G by block, row by row; 0 for the first one
	// The couplings of the border to the last and to the first block of the chain; nil without a border.
	Last, First []float64
}

// errLost is the error for equations that rounding has made such that many fields solve them.
var errLost = errors.New("the coefficients differ by so many powers of ten that rounding loses what determines the " +
	"solution; take a smaller contrast, or solver.method jacobi")

// NewFactors eliminates the equations of the coarsest level. at returns the stencil of an interior point. It fails if
// the equations have no solution.
func (l Layout) NewFactors(at func(x, y int) Point) (*Factors, error) {
	e := &elimination{Factors: Factors{matrices: l.Blocking().newMatrices()}, at: at}
	if l.Plan.Loose {
		e.hold()
	}
	err := e.eliminate()
	if errors.Is(err, errSingular) {
		err = errLost
	}
	if err != nil {
		return nil, fmt.Errorf("multigrid: coarsest level, %d x %d points: %w", e.mesh.NX, e.mesh.NY, err)
	}
	return &e.Factors, nil
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
	if !f.ring() {
		return
	}
	n, m := f.Chain, f.Slots
	y := b[n*m:]
	if n > 0 {
		multiply(y, f.Last, x[(n-1)*m:n*m])
		multiply(y, f.First, x[:m])
	}
	f.closeRing(x, y)
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

// elimination computes Factors.
type elimination struct {
	Factors
	at func(x, y int) Point
}

// hold makes the unknown with the largest C none, the first one of several: where nothing determines a constant, its
// equation follows from the others. What rounding leaves over flows off there, and where material conducts best it
// moves the others least.
func (e *elimination) hold() {
	x0, y0, most, at := 0, 0, 0.0, e.at
	for i := range e.Blocks * e.Slots {
		if x, y := e.Point(i/e.Slots, i%e.Slots); at(x, y).C > most {
			x0, y0, most = x, y, at(x, y).C
		}
	}
	e.at = func(x, y int) Point {
		p := at(x, y)
		if x == x0 && y == y0 {
			p.C = 0
		}
		return p
	}
}

func (e *elimination) eliminate() error {
	n, m := e.Chain, e.Slots
	e.Carry = make([]float64, e.Blocks*m*m)
	for i := range n {
		s := e.of(e.Inverse, i)
		e.within(s, i)
		if i > 0 {
			before, g := e.between(i-1), e.of(e.Carry, i)
			product(g, transposed(before, m), e.of(e.Inverse, i-1), m, 1)
			product(s, g, before, m, -1)
		}
		if err := e.invert(i, e.unknown); err != nil {
			return err
		}
	}
	if !e.ring() {
		return nil
	}
	s := e.of(e.Inverse, n)
	e.within(s, n)
	e.Last, e.First = make([]float64, m*m), e.between(n)
	if n == 0 { // the border is its own neighbour
		for j := range m {
			for k := range m {
				s[j*m+k] -= e.First[j*m+k] + e.First[k*m+j]
			}
		}
		return e.invert(n, e.unknown)
	}
	e.Last = transposed(e.between(n-1), m)
	e.fillRing(e.solveChain, func(k int, b []float64) {
		for j := range m {
			b[j] += e.First[k*m+j]
			b[(n-1)*m+j] += e.Last[k*m+j]
		}
	})
	product(s, e.Last, e.of(e.Ring, n-1), m, -1)
	product(s, e.First, e.Ring, m, -1)
	return e.invert(n, e.unknown)
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
		if k, ok := e.slot(j + 1); ok && e.unknown(block, k) {
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
			if !ok || !(e.unknown(block, j) && e.unknown(next, k)) {
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

func (e *elimination) unknown(block, slot int) bool { return e.point(block, slot).C > 0 }

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
