package results

import (
	"maps"
	"slices"

	"jacobi/solver"
)

// mark finds the regions of the newest row. Points of a row that is not the rank's own count elsewhere.
func (t *Tally) mark(own bool) error {
	l := &t.now
	if t.fixed == nil || t.wallRow(l.iy) {
		l.label = nil
		return nil
	}
	row := l.fixed
	if !t.part.Dropped && !t.named {
		if err := t.countRuns(row, own); err != nil {
			return err
		}
	}
	if l.label == nil {
		l.label = make([]int, t.mesh.NX)
	}
	if t.named {
		t.labelByNumber(row, own)
	} else {
		t.label(row, own)
	}
	if t.mesh.PeriodicColumns() {
		last := t.hi - 1
		if !t.named && l.label[t.lo] >= 0 && l.label[last] >= 0 {
			t.labels.join(l.label[t.lo], l.label[last])
		}
		l.label[0], l.label[t.hi] = l.label[last], l.label[t.lo]
	}
	return nil
}

// label gives the fixed points of the newest row the labels of their regions. If regions are not told apart, all fixed
// points have label 0.
func (t *Tally) label(row []bool, own bool) {
	l, above := &t.now, t.old.label
	if t.old.iy != l.iy-1 {
		above = nil
	}
	for ix := range row {
		l.label[ix] = -1
		if !row[ix] || ix < t.lo || ix >= t.hi {
			continue
		}
		label := -1
		if ix > t.lo {
			label = l.label[ix-1]
		}
		if above != nil && above[ix] >= 0 {
			if label >= 0 {
				t.labels.join(label, above[ix])
			}
			label = above[ix]
		}
		if t.part.Dropped {
			label = 0
		} else if label < 0 {
			label = t.labels.add()
		}
		l.label[ix] = label
		if own {
			t.labels.of(label).add(ix, l.iy, l.values[ix])
		}
	}
}

// labelByNumber gives the fixed points of the newest row the numbers of their regions as labels.
func (t *Tally) labelByNumber(row []bool, own bool) {
	l := &t.now
	t.problem.RegionRow(l.iy, row, l.label)
	for ix, label := range l.label {
		if ix < t.lo || ix >= t.hi {
			l.label[ix] = -1
		} else if label >= 0 && own {
			t.labels.of(label).add(ix, l.iy, l.values[ix])
		}
	}
}

// drop gives up to tell regions apart.
func (t *Tally) drop() {
	t.part.Dropped = true
	t.labels.add()
	t.labels.joinAll()
	for ix, label := range t.old.label {
		t.old.label[ix] = min(label, 0)
	}
}

// fixedRow returns the fixed points of row iy.
func (t *Tally) fixedRow(iy int) ([]bool, error) {
	row := make([]bool, t.mesh.NX)
	canonical, _ := t.mesh.Canonical(iy)
	return row, t.fixed.FixedRow(canonical, row)
}

// countRuns counts the runs of fixed points in row, the newest one, and gives the regions up if there are too many.
func (t *Tally) countRuns(row []bool, own bool) error {
	above := make([]bool, t.mesh.NX) // none above the first row
	switch iy := t.now.iy; {
	case !own || iy <= t.mesh.Interior().Lo:
	case t.old.iy == iy-1:
		above = t.old.fixed
	default: // the first row of the stripe
		var err error
		if above, err = t.fixedRow(iy - 1); err != nil {
			return err
		}
	}
	runs := 0
	for ix := t.lo; ix < t.hi; ix++ {
		if !row[ix] {
			continue
		}
		runs++
		covered := false
		for ; ix < t.hi && row[ix]; ix++ {
			covered = covered || above[ix]
		}
		if own && !covered {
			t.part.Begun++
		}
	}
	if runs > maxRuns || t.part.Begun > maxRuns {
		t.drop()
	}
	return nil
}

// wallRow reports whether row iy is that of a fixed wall.
func (t *Tally) wallRow(iy int) bool { return t.rowWall(iy, solver.Dirichlet) >= 0 }

// rowWall returns the wall of a kind that row iy is; -1 for none. columnWall returns that of a column.
func (t *Tally) rowWall(iy int, kind solver.Wall) int {
	switch w := t.mesh.Walls; {
	case iy == 0 && w.Top == kind:
		return top
	case iy == t.mesh.NY-1 && w.Bottom == kind:
		return bottom
	}
	return -1
}

func (t *Tally) columnWall(ix int, kind solver.Wall) int {
	switch w := t.mesh.Walls; {
	case ix == 0 && w.Left == kind:
		return left
	case ix == t.mesh.NX-1 && w.Right == kind:
		return right
	}
	return -1
}

// ends returns the labels of the runs of fixed points in a row, from left to right, and of areas in its faces.
func (t *Tally) ends(l line) (list []int) {
	if l.label == nil || t.named {
		return nil
	}
	for ix := t.lo; ix < t.hi; ix++ {
		if l.label[ix] >= 0 && (ix == t.lo || l.label[ix-1] < 0) {
			list = append(list, l.label[ix])
		}
	}
	for _, ix := range slices.Sorted(maps.Keys(l.pins[0])) {
		list = append(list, l.pins[0][ix][0], l.pins[0][ix][1])
	}
	return list
}

// owner returns the sum that collects the flux through a point: that of a fixed wall or of a region. It returns nil for
// a free point.
func (t *Tally) owner(l line, ix int) *Sum {
	if wall := t.rowWall(l.iy, solver.Dirichlet); wall >= 0 {
		return &t.part.Flux[wall]
	} else if wall := t.columnWall(ix, solver.Dirichlet); wall >= 0 {
		return &t.part.Flux[wall]
	} else if l.label != nil && l.label[ix] >= 0 {
		return t.labels.of(l.label[ix]).Flux
	}
	return nil
}

// fluxInRow adds the flux between a free point and a fixed one beside it in the newest row. In the row of a Neumann
// wall the face between them has half the length, and half a spacing of the wall lies beside the point that is not
// free.
func (t *Tally) fluxInRow() {
	l := t.now
	weight := t.hy / t.hx
	if !t.mesh.PeriodicRows() {
		weight *= t.half(l.iy, t.mesh.NY)
	}
	along := t.rowWall(l.iy, solver.Neumann)
	for ix, labels := range l.pins[0] {
		t.addPin(l.pinEast(ix), labels, l, ix, l, ix+1, weight)
	}
	from, to := t.facesInRow()
	for ix := from; ix < to; ix++ {
		if l.label == nil && ix > 0 && ix < to-1 {
			ix = to - 2 // only walls are fixed
			continue
		}
		if ix > 0 && ix+1 < t.mesh.NX-1 && l.label != nil && (l.label[ix] < 0) == (l.label[ix+1] < 0) {
			continue // both points are free, or neither is
		}
		t.addFlux(l, ix, l, ix+1, float64(weight*l.toEast(ix)), l.liftEast(ix))
		if along >= 0 {
			t.addWall(along, l, ix, l, ix+1, t.hx/2)
		}
	}
}

// fluxBetween adds the flux between neighbours in the two newest rows.
func (t *Tally) fluxBetween() {
	above, below := t.old, t.now
	for ix, labels := range below.pins[1] {
		weight := t.hx / t.hy
		if !t.mesh.PeriodicColumns() {
			weight *= t.half(ix, t.mesh.NX)
		}
		t.addPin(below.pinNorth(ix), labels, above, ix, below, ix, weight)
	}
	if above.label == nil && below.label == nil && !t.wallRow(above.iy) && !t.wallRow(below.iy) {
		return
	}
	labels := above.label != nil && below.label != nil // of a row of a wall there are none
	for ix := t.lo; ix < t.hi; ix++ {
		if labels && (above.label[ix] < 0) == (below.label[ix] < 0) {
			continue // both points are free, or neither is
		}
		weight := t.hx / t.hy
		if !t.mesh.PeriodicColumns() {
			weight *= t.half(ix, t.mesh.NX)
		}
		t.addFlux(above, ix, below, ix, float64(weight*below.toNorth(ix)), below.liftNorth(ix))
		if along := t.columnWall(ix, solver.Neumann); along >= 0 {
			t.addWall(along, above, ix, below, ix, t.hy/2)
		}
	}
}

// addFlux adds the flux between two neighbours to the owner of the one that is not free. lift is added to the step from
// the first to the second.
func (t *Tally) addFlux(a line, ax int, b line, bx int, weight, lift float64) {
	first, second := t.owner(a, ax), t.owner(b, bx)
	if (first == nil) == (second == nil) {
		return
	}
	step := a.values[ax] - b.values[bx] - lift
	if first == nil {
		first, step = second, -step
	}
	first.Add(float64(weight * step))
}

// addWall adds the flux through the part of a Neumann wall that lies between a free point and one that is not, on the
// side of the latter: it is the wall's, and not that of the point's owner.
func (t *Tally) addWall(wall int, a line, ax int, b line, bx int, length float64) {
	first, second := t.owner(a, ax), t.owner(b, bx)
	if (first == nil) == (second == nil) {
		return
	}
	if first == nil {
		first, second, a, ax, b, bx = second, first, b, bx, a, ax
	}
	if t.areas && a.label != nil && a.label[ax] >= 0 {
		return // derivatives counts what is free of it
	}
	iy, ix := t.place(a.iy, ax)
	g, err := t.wallFlux(wall, iy, ix, a.values[ax])
	if err != nil {
		return // it is not finite, and no sweep has read it
	}
	flux := float64(g * length)
	t.part.Flux[wall].Add(flux)
	t.pass(wall, flux)
	first.Add(-flux)
}

// wallFlux is Problem.WallFlux over the full turn around an axis.
func (t *Tally) wallFlux(wall, iy, ix int, u float64) (float64, error) {
	g, err := t.problem.WallFlux(wall, iy, ix, u)
	return float64(g * t.problem.TurnOfWall(wall, iy, ix)), err
}

// place returns the point of the mesh that the point at row iy and column ix copies, or the point itself.
func (t *Tally) place(iy, ix int) (row, column int) {
	row, _ = t.mesh.Canonical(iy)
	if t.mesh.PeriodicColumns() {
		n := t.mesh.NX - 2
		ix = 1 + (ix-1+n)%n
	}
	return row, ix
}

// derivatives adds the flux through free points of Neumann walls in the newest row.
func (t *Tally) derivatives() error {
	m, l := t.mesh, t.now
	add := func(w, ix int, length float64) error {
		fixed := l.label != nil && l.label[ix] >= 0
		if fixed && !t.areas {
			return nil
		}
		g, err := t.wallFlux(w, l.iy, ix, l.values[ix])
		t.part.Flux[w].Add(float64(g * length))
		t.pass(w, float64(g*length))
		if fixed {
			t.labels.of(l.label[ix]).Flux.Add(-float64(g * length))
		}
		return err
	}
	for _, side := range []struct {
		wall      int
		condition solver.Wall
		ix        int
	}{{left, m.Walls.Left, 0}, {right, m.Walls.Right, m.NX - 1}} {
		if side.condition != solver.Neumann {
			continue
		}
		length := t.hy
		if !m.PeriodicRows() {
			length *= t.half(l.iy, m.NY)
		}
		if err := add(side.wall, side.ix, length); err != nil {
			return err
		}
	}
	for _, side := range []struct {
		wall      int
		condition solver.Wall
		iy        int
	}{{top, m.Walls.Top, 0}, {bottom, m.Walls.Bottom, m.NY - 1}} {
		for ix := t.lo; side.condition == solver.Neumann && l.iy == side.iy && ix < t.hi; ix++ {
			length := t.hx
			if !m.PeriodicColumns() {
				length *= t.half(ix, m.NX)
			}
			if err := add(side.wall, ix, length); err != nil {
				return err
			}
		}
	}
	return nil
}
