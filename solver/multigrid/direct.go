package multigrid

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"jacobi/solver"
)

// Couplings are the weights of a point's neighbours in the equation of a level, u - X (west + east) - Y (north + south)
// = b. In the terms of solver.Operator, X is h(1-q) and Y is hq.
type Couplings struct{ X, Y float64 }

// Direct solves the coarsest level by block elimination in float64. A block is a row or a column of the level, across
// its longer direction; slots are its points. With block i's couplings to its neighbours, Low and High, the equations
// are
//
//	D[i] x[i] - Low(i) x[i-1] - High(i) x[i+1] = b[i]    S[0] = D[0]    S[i] = D[i] - Low(i) High(i-1) S[i-1]^-1
//
// at free slots, those that sweeps update; x and b are 0 at all others. docs/numerics.md defines the bits.
//
// Where the longer direction is periodic, the last block is the border: it is a neighbour of the first block, too. All
// blocks before it are the chain, which has the solution p[i] + Ring[i] x[border], with p that for x[border] = 0.
type Direct struct {
	Blocking
	Inverse []float64 // S^-1 by block, row by row; of the border, the inverse of what is left of its equations
	Ring    []float64 // by block of the chain, row by row; nil without a border

	across, along float64 // couplings within a block and between blocks
	mirrors       [2]bool // the first, the last block lies on a Neumann wall
	free          []bool  // by block and slot
}

// Blocking divides a level into blocks, rows or columns across its longer direction, and the points of a block into
// slots.
type Blocking struct {
	Slots, Blocks int
	Chain         int // blocks that are not the border
	mesh          solver.Mesh
	columns       bool // the blocks are columns
}

// Blocking divides the coarsest level.
func (l Layout) Blocking() Blocking {
	m := l.Plan.Levels[len(l.Plan.Levels)-1].Mesh
	lo, hi := m.InteriorColumns()
	b := Blocking{mesh: m, Slots: hi - lo, Blocks: m.Interior().Rows()}
	low := m.Walls.Top
	if b.columns = b.Slots > b.Blocks; b.columns {
		b.Slots, b.Blocks = b.Blocks, b.Slots
		low = m.Walls.Left
	}
	if b.Chain = b.Blocks; low == solver.Periodic {
		b.Chain--
	}
	return b
}

// Point returns the column and the row of a slot of a block.
func (b *Blocking) Point(block, slot int) (x, y int) {
	x, _ = b.mesh.InteriorColumns()
	y = b.mesh.Interior().Lo
	if b.columns {
		return x + block, y + slot
	}
	return x + slot, y + block
}

// NewDirect eliminates the equations of the coarsest level. It fails if they have no solution.
func (l Layout) NewDirect() (*Direct, error) {
	d := l.newDirect()
	if l.Fixed != nil {
		for i := range d.free {
			x, y := d.Point(i/d.Slots, i%d.Slots)
			d.free[i] = !slices.ContainsFunc(l.Fixed[len(l.Fixed)-1][y], func(c Columns) bool {
				return c.Lo <= x && x < c.Hi
			})
		}
	}
	if err := d.eliminate(); err != nil {
		return nil, fmt.Errorf("multigrid: coarsest level, %d x %d points: %w", d.mesh.NX, d.mesh.NY, err)
	}
	return d, nil
}

// newDirect returns a Direct without its matrices and fixed points.
func (l Layout) newDirect() *Direct {
	d := &Direct{Blocking: l.Blocking(), across: l.Plan.Coarsest.X, along: l.Plan.Coarsest.Y}
	w := d.mesh.Walls
	low, high := w.Top, w.Bottom
	if d.columns {
		d.across, d.along = d.along, d.across
		low, high = w.Left, w.Right
	}
	d.mirrors = [2]bool{low == solver.Neumann, high == solver.Neumann}
	d.free = slices.Repeat([]bool{true}, d.Slots*d.Blocks)
	return d
}

// DirectSize returns the slots, the blocks and the bytes of the matrices of NewDirect.
func (l Layout) DirectSize() (slots, blocks int, bytes int64) {
	d := l.newDirect()
	matrices := d.Blocks
	if d.Chain < d.Blocks {
		matrices += d.Chain
	}
	return d.Slots, d.Blocks, 8 * int64(matrices) * int64(d.Slots*d.Slots)
}

// Free reports whether sweeps update the point at a slot of a block.
func (d *Direct) Free(block, slot int) bool { return d.free[block*d.Slots+slot] }

// Low returns the coupling of a block to the one before it.
func (d *Direct) Low(block int) float64 {
	if block == d.Blocks-1 && d.mirrors[1] {
		return 2 * d.along
	}
	return d.along
}

// High returns the coupling of a block to the one after it.
func (d *Direct) High(block int) float64 {
	if block == 0 && d.mirrors[0] {
		return 2 * d.along
	}
	return d.along
}

// Solve sets x to the solution for b, both by block and slot. b is overwritten, and 0 at slots that are not free. For
// the n blocks of the chain, at free slots,
//
//	y[0] = b[0]      y[i] = fma(Low(i), z[i-1], b[i])    z[i] = S[i]^-1 y[i]
//	p[n-1] = z[n-1]  p[i] = S[i]^-1 fma(High(i), p[i+1], y[i])
//
// Without a border x is p. With one, its right-hand side becomes fma(c, p[0], fma(c, p[n-1], b)), c the coupling, the
// product of its matrix with that is x there, and then x[i] = p[i] + Ring[i] x[border]. A product of a matrix is a
// chain of fma in the order of slots, which begins with +0, or with p[i].
func (d *Direct) Solve(x, b []float64) {
	d.solveChain(x, b)
	if d.Ring == nil {
		return
	}
	n, m := d.Chain, d.Slots
	border, y := x[n*m:], b[n*m:]
	if n > 0 {
		d.add(n, y, d.along, x[(n-1)*m:])
		d.add(n, y, d.along, x)
	}
	clear(border)
	multiply(border, d.Inverse[n*m*m:], y[:m])
	for i := range n {
		multiply(x[i*m:(i+1)*m], d.Ring[i*m*m:], border)
	}
}

// solveChain sets x to p, and b to y.
func (d *Direct) solveChain(x, b []float64) {
	n, m := d.Chain, d.Slots
	invert := func(i int) {
		p := x[i*m : (i+1)*m]
		clear(p)
		multiply(p, d.Inverse[i*m*m:], b[i*m:(i+1)*m])
	}
	for i := range n {
		if i > 0 {
			d.add(i, b[i*m:(i+1)*m], d.Low(i), x[(i-1)*m:])
		}
		invert(i)
	}
	for i := n - 2; i >= 0; i-- {
		d.add(i, b[i*m:(i+1)*m], d.High(i), x[(i+1)*m:])
		invert(i)
	}
}

// add adds w times the values of a neighbouring block to y, at the free slots of a block.
func (d *Direct) add(block int, y []float64, w float64, neighbour []float64) {
	for j := range y {
		if d.Free(block, j) {
			y[j] = math.FMA(w, neighbour[j], y[j])
		}
	}
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

// errSingular is the error for equations that many fields solve, or that rounding has made such.
var errSingular = errors.New("nothing determines the solution: no wall and no point is fixed, and the screening " +
	"is lost")

// eliminate computes the matrices. All ranks and devices use these, so they are the same on every processor: each
// operation is rounded once.
func (d *Direct) eliminate() error {
	m := d.Slots * d.Slots
	d.Inverse = make([]float64, d.Blocks*m)
	for i := range d.Blocks {
		d.within(i, d.matrix(i))
	}
	for i := range d.Chain {
		if i > 0 {
			d.subtract(i, float64(d.Low(i)*d.High(i-1)), d.matrix(i-1))
		}
		if err := d.invert(i); err != nil {
			return err
		}
	}
	if d.Chain == d.Blocks {
		return nil
	}
	return d.closeRing()
}

// matrix returns the memory of a block's matrix.
func (d *Direct) matrix(block int) []float64 {
	m := d.Slots * d.Slots
	return d.Inverse[block*m : (block+1)*m]
}

// within sets a matrix to D of a block. Slots that are not free have the row and the column of the unit matrix, and in
// the inverse 0: x is 0 there.
func (d *Direct) within(block int, s []float64) {
	first, last := d.mesh.Walls.Left, d.mesh.Walls.Right
	if d.columns {
		first, last = d.mesh.Walls.Top, d.mesh.Walls.Bottom
	}
	for j := range d.Slots {
		s[j*d.Slots+j]++
		for _, k := range [2]int{j - 1, j + 1} {
			switch {
			case first == solver.Periodic:
				k = (k + d.Slots) % d.Slots
			case k < 0 && first == solver.Neumann:
				k = 1
			case k == d.Slots && last == solver.Neumann:
				k = d.Slots - 2
			case k < 0 || k == d.Slots:
				continue
			}
			if d.Free(block, j) && d.Free(block, k) {
				s[j*d.Slots+k] -= d.across
			}
		}
	}
}

// subtract subtracts w times a matrix from that of a block, at its free slots.
func (d *Direct) subtract(block int, w float64, from []float64) {
	s := d.matrix(block)
	for j := range d.Slots {
		for k := range d.Slots {
			if at := j*d.Slots + k; d.Free(block, j) && d.Free(block, k) {
				s[at] = math.FMA(-w, from[at], s[at])
			}
		}
	}
}

// invert replaces the matrix of a block by its inverse. It is 0 at slots that are not free.
func (d *Direct) invert(block int) error {
	m, s := d.Slots, d.matrix(block)
	if err := invert(s, m); err != nil {
		return err
	}
	for j := range m {
		if !d.Free(block, j) {
			s[j*m+j] = 0
		}
	}
	return nil
}

// invert replaces a matrix of m rows by its inverse, by elimination without pivots: no diagonal element is less than
// the sum of the others in its row, or the matrix is symmetric and positive definite.
func invert(s []float64, m int) error {
	for p := range m {
		pivot, row := s[p*m+p], s[p*m:(p+1)*m]
		if !(pivot > 0) {
			return errSingular
		}
		row[p] = 1
		for k := range row {
			row[k] /= pivot
		}
		for j := range m {
			f := s[j*m+p]
			if j == p || f == 0 {
				continue
			}
			s[j*m+p] = 0
			for k, v := range row {
				s[j*m+k] = math.FMA(-f, v, s[j*m+k])
			}
		}
	}
	return nil
}

// closeRing computes Ring, column by column, and the matrix of the border.
func (d *Direct) closeRing() error {
	n, m := d.Chain, d.Slots
	d.Ring = make([]float64, n*m*m)
	x, b := make([]float64, n*m), make([]float64, n*m)
	for k := range m {
		clear(b)
		for _, i := range [2]int{0, n - 1} {
			if n > 0 && d.Free(n, k) && d.Free(i, k) {
				b[i*m+k] += d.along
			}
		}
		d.solveChain(x, b)
		for at, v := range x {
			d.Ring[at*m+k] = v
		}
	}
	if n > 0 {
		d.subtract(n, d.along, d.Ring[(n-1)*m*m:])
		d.subtract(n, d.along, d.Ring)
	} else { // the border is its own neighbour
		for j := range m {
			if d.Free(0, j) {
				d.Inverse[j*m+j] -= float64(2 * d.along)
			}
		}
	}
	return d.invert(n)
}
