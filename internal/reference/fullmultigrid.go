package reference

import "math"

// Interpolate sets the field to that of the cycles over the next coarser mesh.
func (m *Multigrid) Interpolate(coarse *Multigrid) {
	l, fine, from := m.plan.Levels[0], m.levels[0], coarse.levels[0]
	for y := range fine.mesh.NY {
		for x := range fine.mesh.NX {
			if !fine.swept(y, x) {
				continue
			}
			x0, wx := l.X.Between(x)
			y0, wy := l.Y.Between(y)
			var t [2]float64
			for k := range t {
				north, south := from.at(from.field, y0, x0+k), from.at(from.field, y0+1, x0+k)
				t[k] = math.FMA(float64(wy), south-north, north)
			}
			fine.field[y*fine.mesh.NX+x] = math.FMA(float64(wx), t[1]-t[0], t[0])
		}
	}
	fine.copyPeriodic(fine.field)
}

// RestrictSource sets the source of the cycles over the next coarser mesh.
func (m *Multigrid) RestrictSource(coarse *Multigrid) {
	fine := m.levels[0]
	swept := make([]float64, len(fine.source))
	for i, b := range fine.source {
		if fine.swept(i/fine.mesh.NX, i%fine.mesh.NX) {
			swept[i] = b
		}
	}
	m.restrictTo(0, swept, coarse.levels[0])
}
