package accuracy

import "math"

// enough is the part of the first square of the residual at which the iteration ends.
const enough = 1e-12

// solve returns the errors of the blocks, by conjugate gradients with the diagonal as preconditioner.
func (s *system) solve() []float64 {
	n := s.blocks()
	x, r, p, q := make([]float64, n), append([]float64(nil), s.defect...), make([]float64, n), make([]float64, n)
	diagonal := s.diagonal()
	rho, first := 0.0, 0.0
	for k := range 20 * n {
		last := rho
		rho = 0
		for i := range r {
			if diagonal[i] > 0 {
				rho += r[i] * r[i] / diagonal[i]
			}
		}
		if first = max(first, rho); rho == 0 || math.IsNaN(rho) || rho < enough*first {
			break
		}
		beta := 0.0
		if k > 0 {
			beta = rho / last
		}
		for i := range p {
			if diagonal[i] > 0 {
				p[i] = r[i]/diagonal[i] + beta*p[i]
			}
		}
		s.apply(p, q)
		energy := 0.0
		for i := range p {
			energy += p[i] * q[i]
		}
		if !(energy > 0) {
			break
		}
		for i := range p {
			x[i] += rho / energy * p[i]
			r[i] -= rho / energy * q[i]
		}
	}
	return x
}

// diagonal returns the diagonal of the matrix.
func (s *system) diagonal() []float64 {
	d := append([]float64(nil), s.hold...)
	s.each(func(a, b int, w float64) {
		d[a] += w
		d[b] += w
	})
	return d
}

// apply sets q to the product of the matrix and p.
func (s *system) apply(p, q []float64) {
	for i := range q {
		q[i] = s.hold[i] * p[i]
	}
	s.each(func(a, b int, w float64) {
		flux := w * (p[a] - p[b])
		q[a] += flux
		q[b] -= flux
	})
}

// each calls f for each coupling of two blocks.
func (s *system) each(f func(a, b int, w float64)) {
	n, m := len(s.columns), len(s.rows)
	for at := range s.right {
		i, j := at%n, at/n
		if next := j*n + (i+1)%n; s.right[at] > 0 && s.free[at] > 0 && s.free[next] > 0 {
			f(at, next, s.right[at])
		}
		if next := (j+1)%m*n + i; s.down[at] > 0 && s.free[at] > 0 && s.free[next] > 0 {
			f(at, next, s.down[at])
		}
	}
}
