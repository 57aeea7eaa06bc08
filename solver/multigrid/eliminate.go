package multigrid

import (
	"errors"
	"math"

	"jacobi/solver"
)

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
