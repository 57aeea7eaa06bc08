package problem

import (
	"math"

	"jacobi/solver"
)

// faces are the coefficients of the faces between the points of a row and their neighbours in the next column and in
// the row below; 0 where there is none. Two rows of equations have the faces between them in common.
type faces struct {
	east, south    []float64
	alongX, alongY []float64 // the same divided by hx^2 and by hy^2
}

// faces returns those of row iy, which is canonical. Below a Neumann wall lies the mirror row.
func (p *Problem) faces(iy int) (*faces, error) {
	if _, inside := p.between(iy + 1); inside && p.grounds.of(iy+1) == p.grounds.of(iy) {
		iy = p.grounds.of(iy)
	}
	return p.sides.at(iy, p.newFaces)
}

// newFaces works out a row.
func (p *Problem) newFaces(iy int) (*faces, error) {
	here, err := p.material(iy)
	if err != nil {
		return nil, err
	}
	n := p.mesh.NX
	all := make([]float64, 4*n)
	f := &faces{all[:n:n], all[n : 2*n : 2*n], all[2*n : 3*n : 3*n], all[3*n:]}
	here.toNext(f.east)
	divide(f.alongX, f.east, float64(p.numbers.hx*p.numbers.hx))
	if iy+1 == p.mesh.NY && p.mesh.Walls.Bottom != solver.Neumann {
		return f, nil
	}
	below, err := p.beside(iy+1, iy-1)
	if err != nil {
		return nil, err
	}
	here.toRow(below, f.south)
	divide(f.alongY, f.south, float64(p.numbers.hy*p.numbers.hy))
	return f, nil
}

// above returns the faces between row iy and the row above it: those of that row, or the mirrored ones of row iy.
func (p *Problem) above(iy int) (*faces, error) {
	if iy > 0 {
		iy, _ = p.mesh.Canonical(iy - 1)
	}
	return p.faces(iy)
}

// divide sets dst to values over d. A product with the inverse of a power of two is rounded alike, and takes less time.
func divide(dst, values []float64, d float64) {
	values = values[:len(dst)]
	if fraction, _ := math.Frexp(d); fraction == 0.5 {
		inverse := 1 / d
		for i, v := range values {
			dst[i] = v * inverse
		}
		return
	}
	for i, v := range values {
		dst[i] = v / d
	}
}
