package reference

// Interpolate sets the field to that of the cycles over the next coarser mesh.
func (m *Multigrid) Interpolate(coarse *Multigrid) {
	l, fine, from := m.plan.Levels[0], m.levels[0], coarse.levels[0]
	for y := range fine.mesh.NY {
		for x := range fine.mesh.NX {
			if fine.swept(y, x) {
				fine.field[y*fine.mesh.NX+x] = from.between(l, y, x)
			}
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
