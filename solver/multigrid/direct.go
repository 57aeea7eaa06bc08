package multigrid

import (
	"fmt"
	"math"

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
// at free slots. All are free but for the first one where nothing determines a constant: its equation follows from the
// others, and x and b are 0 there. Every backend has the same matrices, so the order of the operations here defines the
// bits.
type Direct struct {
	matrices

	across, along float64 // couplings within a block and between blocks
	mirrors       [2]bool // the first, the last block lies on a Neumann wall
	held          bool    // the first slot is not free
}

// NewDirect eliminates the equations of the coarsest level. It fails if they have no solution.
func (l Layout) NewDirect() (*Direct, error) {
	d := &Direct{matrices: l.Blocking().newMatrices(), across: l.Plan.Coarsest.X, along: l.Plan.Coarsest.Y,
		held: l.Plan.Loose}
	w := d.mesh.Walls
	low, high := w.Top, w.Bottom
	if d.columns {
		d.across, d.along = d.along, d.across
		low, high = w.Left, w.Right
	}
	d.mirrors = [2]bool{low == solver.Neumann, high == solver.Neumann}
	if err := d.eliminate(); err != nil {
		return nil, fmt.Errorf("multigrid: coarsest level, %d x %d points: %w", d.mesh.NX, d.mesh.NY, err)
	}
	return d, nil
}

// Free reports whether a slot of a block is free.
func (d *Direct) Free(block, slot int) bool { return !d.held || block+slot > 0 }

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
	if !d.ring() {
		return
	}
	n, m := d.Chain, d.Slots
	y := b[n*m:][:m]
	if n > 0 {
		d.add(n, y, d.along, x[(n-1)*m:])
		d.add(n, y, d.along, x)
	}
	d.closeRing(x, y)
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

// eliminate computes the matrices.
func (d *Direct) eliminate() error {
	for i := range d.Blocks {
		d.within(i)
	}
	n, m := d.Chain, d.Slots
	for i := range n {
		if i > 0 {
			d.subtract(i, float64(d.Low(i)*d.High(i-1)), d.of(d.Inverse, i-1))
		}
		if err := d.invert(i, d.Free); err != nil {
			return err
		}
	}
	switch border := d.Inverse[n*m*m:]; {
	case !d.ring():
		return nil
	case n == 0: // the border is its own neighbour
		for j := range m {
			if d.Free(0, j) {
				border[j*m+j] -= float64(2 * d.along)
			}
		}
	default:
		d.fillRing(d.solveChain, func(k int, b []float64) {
			for _, i := range [2]int{0, n - 1} {
				if d.Free(n, k) && d.Free(i, k) {
					b[i*m+k] += d.along
				}
			}
		})
		d.subtract(n, d.along, d.of(d.Ring, n-1))
		d.subtract(n, d.along, d.Ring)
	}
	return d.invert(n, d.Free)
}

// within sets the matrix of a block, which is 0, to D. Slots that are not free have the row and the column of the unit
// matrix, and in the inverse 0: x is 0 there.
func (d *Direct) within(block int) {
	s, first, last := d.of(d.Inverse, block), d.mesh.Walls.Left, d.mesh.Walls.Right
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
	s := d.of(d.Inverse, block)
	for j := range d.Slots {
		for k := range d.Slots {
			if at := j*d.Slots + k; d.Free(block, j) && d.Free(block, k) {
				s[at] = math.FMA(-w, from[at], s[at])
			}
		}
	}
}
