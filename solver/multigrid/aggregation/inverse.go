package aggregation

// inverse returns the inverse of the equations of the level, row by row. Elimination keeps excess and faces apart, so
// that it adds positive numbers only and no digits are lost, whatever the contrast (W. K. Grassmann, M. I. Taksar,
// D. P. Heyman, Operations Research 33, 1985). Of unknowns that hang together and that nothing holds, the last one is
// 0.
func (l *Level) inverse() []float64 {
	n := l.Unknowns()
	f, e, d := make([]float64, n*n), make([]float64, n), make([]float64, n)
	for i := range n {
		e[i] = float64(l.Excess[i])
		for k := l.Begin[i]; k < l.Begin[i+1]; k++ {
			f[i*n+int(l.Neighbour[k])] = float64(l.Face[k])
		}
	}
	for k := range n { // row k becomes the weights with which the others get what k has
		row := f[k*n:][:n]
		d[k] = e[k]
		for _, v := range row[k+1:] {
			d[k] += v
		}
		if d[k] == 0 {
			continue
		}
		for i := k + 1; i < n; i++ {
			if row[i] == 0 {
				continue
			}
			t := row[i] / d[k]
			e[i] += float64(t * e[k])
			to := f[i*n:][:n]
			for j := k + 1; j < n; j++ {
				if j != i {
					to[j] += float64(t * row[j])
				}
			}
		}
		for i := k + 1; i < n; i++ {
			row[i] /= d[k]
		}
	}
	// With U the weights, of which row k is above the diagonal, A = (1-U)^T D (1-U). Column j of the inverse follows by
	// substitution forward and back.
	inverse, x := make([]float64, n*n), make([]float64, n)
	for j := range n {
		clear(x)
		x[j] = 1
		for k := j; k < n; k++ {
			if v := x[k]; v != 0 {
				for i, t := range f[k*n+k+1 : (k+1)*n] {
					x[k+1+i] += float64(t * v)
				}
			}
		}
		for k := n - 1; k >= 0; k-- {
			v := 0.0
			if d[k] > 0 {
				v = x[k] / d[k]
				for i, t := range f[k*n+k+1 : (k+1)*n] {
					v += float64(t * x[k+1+i])
				}
			}
			x[k] = v
		}
		copy(inverse[j*n:], x)
	}
	return inverse
}
