package multigrid

import "math"

// elimination computes Factors.
type elimination struct {
	Factors
	points []Point // by block and slot
}

// hold makes the unknown with the largest C none, the first one of several: where nothing determines a constant, its
// equation follows from the others. What rounding leaves over flows off there, and where material conducts best it
// moves the others least.
func (e *elimination) hold() {
	held := 0
	for i, p := range e.points {
		if p.C > e.points[held].C {
			held = i
		}
	}
	e.points[held].C = 0
}

func (e *elimination) eliminate() error {
	n, m := e.Chain, e.Slots
	for i := range e.Blocks {
		e.within(e.of(e.inverse, i), i)
	}
	for i := range n {
		s := e.of(e.inverse, i)
		if i > 0 {
			before, g := make([]float64, m*m), e.of(e.carry, i)
			e.between(before, i-1)
			product(g, transposed(before, m), e.of(e.inverse, i-1), m, 1)
			product(s, g, before, m, -1)
		}
		if err := e.invert(i); err != nil {
			return err
		}
	}
	if !e.hasBorder() {
		return nil
	}
	s := e.of(e.inverse, n)
	e.between(e.first, n)
	if n == 0 { // the border is its own neighbour
		for j := range m {
			for k := range m {
				s[j*m+k] -= e.first[j*m+k] + e.first[k*m+j]
			}
		}
		return e.invert(n)
	}
	to := make([]float64, m*m)
	e.between(to, n-1)
	copy(e.last, transposed(to, m))
	e.fillRing()
	product(s, e.last, e.of(e.ring, n-1), m, -1)
	product(s, e.first, e.ring, m, -1)
	return e.invert(n)
}

// fillRing computes ring, column by column.
func (e *elimination) fillRing() {
	n, m := e.Chain, e.Slots
	x, b := e.x[:n*m], e.b[:n*m]
	for k := range m {
		clear(b)
		for j := range m {
			b[j] += e.first[k*m+j]
			b[(n-1)*m+j] += e.last[k*m+j]
		}
		e.solveChain(x, b)
		for at, v := range x {
			e.ring[at*m+k] = v
		}
	}
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

// between adds the couplings of a block to the next one, row by row, to u.
func (e *elimination) between(u []float64, block int) {
	next := (block + 1) % e.Blocks
	for j := range e.Slots {
		for d := -1; d <= 1; d++ {
			if k, ok := e.slot(j + d); ok && e.unknown(block, j) && e.unknown(next, k) {
				u[j*e.Slots+k] += e.coupling(block, next, j, k, d)
			}
		}
	}
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

func (e *elimination) point(block, slot int) *Point { return &e.points[block*e.Slots+slot] }

func (e *elimination) unknown(block, slot int) bool { return e.point(block, slot).C > 0 }

// invert replaces the matrix of a block by its inverse, which is 0 at slots that are no unknowns. It eliminates without
// pivots, since the matrix is symmetric and positive definite.
func (e *elimination) invert(block int) error {
	s, n := e.of(e.inverse, block), e.Slots
	for p := range n {
		pivot, row := s[p*n+p], s[p*n:(p+1)*n]
		if !(pivot > 0) {
			return errSingular
		}
		row[p] = 1
		for k := range row {
			row[k] /= pivot
		}
		for j := range n {
			f := s[j*n+p]
			if j == p || f == 0 {
				continue
			}
			s[j*n+p] = 0
			for k, v := range row {
				s[j*n+k] = math.FMA(-f, v, s[j*n+k])
			}
		}
	}
	for j := range n {
		if !e.unknown(block, j) {
			s[j*n+j] = 0
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
