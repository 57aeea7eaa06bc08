package results

import (
	"maps"
	"slices"

	"jacobi/solver"
)

// run is fixed points side by side in a row, among the columns that a sweep updates.
type run struct {
	lo, hi int // columns
	label  int
	extent extent
}

// runsOf returns the runs of row iy with these fixed points. Without values they have no extents.
func (t *Tally) runsOf(iy int, fixed []bool, values []float64) (runs []run) {
	for ix := t.lo; ix < t.hi; ix++ {
		if !fixed[ix] {
			continue
		}
		if n := len(runs); n == 0 || runs[n-1].hi < ix {
			runs = append(runs, run{lo: ix})
		}
		r := &runs[len(runs)-1]
		if r.hi = ix + 1; values != nil {
			r.extent.add(ix, iy, values[ix])
		}
	}
	return runs
}

// overlapping returns those of the runs above that lie over r. from is where to look for them; it is moved on.
func overlapping(above []run, r run, from *int) []run {
	for *from < len(above) && above[*from].hi <= r.lo {
		*from++
	}
	end := *from
	for end < len(above) && above[end].lo < r.hi {
		end++
	}
	return above[*from:end]
}

// mark finds the fixed points of a row: by the numbers of their regions, or in runs.
func (t *Tally) mark(l *line) {
	if !t.named {
		l.runs = t.runsOf(l.iy, l.fixed, l.values)
		return
	}
	t.problem.RegionRow(l.iy, l.fixed, l.label)
	l.extents = make([]extent, len(t.labels.regions))
	for ix, label := range l.label {
		if ix < t.lo || ix >= t.hi {
			l.label[ix] = -1
		} else if label >= 0 {
			l.extents[label].add(ix, l.iy, l.values[ix])
		}
	}
	t.wrapLabels(l)
}

// wrapLabels copies the labels of periodic columns.
func (t *Tally) wrapLabels(l *line) {
	if t.mesh.PeriodicColumns() {
		l.label[0], l.label[t.hi] = l.label[t.hi-1], l.label[t.lo]
	}
}

// writeLabels writes the labels of the runs of a row to its points.
func (t *Tally) writeLabels(l *line) {
	if t.named || l.label == nil {
		return
	}
	for ix := range l.label {
		l.label[ix] = -1
	}
	for _, r := range l.runs {
		for ix := r.lo; ix < r.hi; ix++ {
			l.label[ix] = r.label
		}
	}
	t.wrapLabels(l)
}

// join finds the regions of the newest row. Points of a row that is not the rank's own count elsewhere. If regions are
// not told apart, all fixed points have label 0.
func (t *Tally) join(own bool) error {
	l := &t.now
	for number, e := range l.extents {
		if own {
			t.labels.of(number).extent.merge(e)
		}
	}
	if l.fixed == nil || t.named {
		return nil
	}
	if !t.part.Dropped {
		if err := t.countRuns(own); err != nil {
			return err
		}
	}
	var above []run
	if t.old.iy == l.iy-1 {
		above = t.old.runs
	}
	from := 0
	for i := range l.runs {
		r := &l.runs[i]
		r.label = -1
		for _, a := range overlapping(above, *r, &from) {
			if r.label >= 0 {
				t.labels.join(r.label, a.label)
			}
			r.label = a.label
		}
		if t.part.Dropped {
			r.label = 0
		} else if r.label < 0 {
			r.label = t.labels.add()
		}
		if own {
			t.labels.of(r.label).extent.merge(r.extent)
		}
	}
	if n := len(l.runs); t.mesh.PeriodicColumns() && n > 0 && l.runs[0].lo == t.lo && l.runs[n-1].hi == t.hi {
		t.labels.join(l.runs[0].label, l.runs[n-1].label)
	}
	return nil
}

// drop gives up to tell regions apart.
func (t *Tally) drop() {
	t.part.Dropped = true
	t.labels.add()
	t.labels.joinAll()
}

// fixedRow writes the fixed points of row iy to row.
func (t *Tally) fixedRow(iy int, row []bool) error {
	canonical, _ := t.mesh.Canonical(iy)
	return t.fixed.FixedRow(canonical, row)
}

// countRuns counts the runs of the newest row, and gives the regions up if there are too many.
func (t *Tally) countRuns(own bool) error {
	var above []run // none above the first row
	switch iy := t.now.iy; {
	case !own || iy <= t.mesh.Interior().Lo:
	case t.old.iy == iy-1:
		above = t.old.runs
	default: // the first row of the stripe
		fixed := make([]bool, t.mesh.NX)
		if err := t.fixedRow(iy-1, fixed); err != nil {
			return err
		}
		above = t.runsOf(iy-1, fixed, nil)
	}
	from := 0
	for _, r := range t.now.runs {
		if own && len(overlapping(above, r, &from)) == 0 {
			t.part.Begun++
		}
	}
	if len(t.now.runs) > maxRuns || t.part.Begun > maxRuns {
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
	if l.fixed == nil || t.named {
		return nil
	}
	for _, r := range l.runs {
		list = append(list, r.label)
	}
	for _, ix := range slices.Sorted(maps.Keys(l.pins[0])) {
		list = append(list, l.pins[0][ix][0], l.pins[0][ix][1])
	}
	return list
}

// owner returns the sum that collects the flux through a point: that of a fixed wall or of a region. It returns nil for
// a free point.
func (t *pair) owner(l line, ix int) *Sum {
	if wall := t.rowWall(l.iy, solver.Dirichlet); wall >= 0 {
		return &t.part.Flux[wall]
	} else if wall := t.columnWall(ix, solver.Dirichlet); wall >= 0 {
		return &t.part.Flux[wall]
	} else if l.label != nil && l.label[ix] >= 0 {
		return t.region(l.label[ix])
	}
	return nil
}

// fluxInRow adds the flux between a free point and a fixed one beside it in the newest row. In the row of a Neumann
// wall the face between them has half the length, and half a spacing of the wall lies beside the point that is not
// free.
func (t *pair) fluxInRow() {
	l := t.now
	weight := t.hy / t.hx * t.rowPart(l.iy)
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
func (t *pair) fluxBetween() {
	above, below := t.old, t.now
	for ix, labels := range below.pins[1] {
		t.addPin(below.pinNorth(ix), labels, above, ix, below, ix, t.hx/t.hy*t.columnPart(ix))
	}
	if above.label == nil && below.label == nil && !t.wallRow(above.iy) && !t.wallRow(below.iy) {
		return
	}
	labels := above.label != nil && below.label != nil // of a row of a wall there are none
	for ix := t.lo; ix < t.hi; ix++ {
		if labels && (above.label[ix] < 0) == (below.label[ix] < 0) {
			continue // both points are free, or neither is
		}
		weight := t.hx / t.hy * t.columnPart(ix)
		t.addFlux(above, ix, below, ix, float64(weight*below.toNorth(ix)), below.liftNorth(ix))
		if along := t.columnWall(ix, solver.Neumann); along >= 0 {
			t.addWall(along, above, ix, below, ix, t.hy/2)
		}
	}
}

// addFlux adds the flux between two neighbours to the owner of the one that is not free. lift is added to the step from
// the first to the second.
func (t *pair) addFlux(a line, ax int, b line, bx int, weight, lift float64) {
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
func (t *pair) addWall(wall int, a line, ax int, b line, bx int, length float64) {
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
func (t *pair) derivatives() error {
	l := t.now
	add := func(w, ix int, length float64) error {
		fixed := l.label != nil && l.label[ix] >= 0
		if fixed && !t.areas {
			return nil
		}
		g, err := t.wallFlux(w, l.iy, ix, l.values[ix])
		t.part.Flux[w].Add(float64(g * length))
		t.pass(w, float64(g*length))
		if fixed {
			t.region(l.label[ix]).Add(-float64(g * length))
		}
		return err
	}
	for _, ix := range [2]int{0, t.mesh.NX - 1} {
		if w := t.columnWall(ix, solver.Neumann); w >= 0 {
			if err := add(w, ix, t.hy*t.rowPart(l.iy)); err != nil {
				return err
			}
		}
	}
	w := t.rowWall(l.iy, solver.Neumann)
	for ix := t.lo; w >= 0 && ix < t.hi; ix++ {
		if err := add(w, ix, t.hx*t.columnPart(ix)); err != nil {
			return err
		}
	}
	return nil
}
