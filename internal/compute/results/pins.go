package results

import (
	"cmp"
	"slices"
)

// A fixed area may lie in the face between two points, and cover neither. Its flux is that from both of them. Without
// names, it belongs to the region of what lies in the same cells with the same value, or with only fixed area between.

// Pin is an area in the face between two points, as it is seen from either of them.
type Pin struct {
	C      [2]float64    // the coefficient over the part of the face that leads to the area; 0 if nothing does
	U      [2]float64    // the value there
	Place  [2][2]float64 // where that is: its column and row, not rounded
	Region [2]int        // by number; -1 if regions have no names
}

// Turned returns the pin as it is seen from the other end of its face.
func (p *Pin) Turned() *Pin {
	q := *p
	for i := range 2 {
		q.C[i], q.U[i], q.Place[i], q.Region[i] = p.C[1-i], p.U[1-i], p.Place[1-i], p.Region[1-i]
	}
	return &q
}

// turnPins returns pins of row iy over the full turn around an axis.
func (t *Tally) turnPins(iy int, at Place, pins []*Pin) []*Pin {
	if pins == nil {
		return nil
	}
	turn := slices.Repeat([]float64{1}, len(pins))
	t.problem.Turn(iy, at, turn)
	pins = slices.Clone(pins)
	for i, pin := range pins {
		if pin != nil {
			pin := *pin
			pin.C[0], pin.C[1] = float64(pin.C[0]*turn[i]), float64(pin.C[1]*turn[i])
			pins[i] = &pin
		}
	}
	return pins
}

// flux returns what passes from the area to a point at one end with value u, times the spacing.
func (p *Pin) flux(end int, u float64) float64 { return float64(p.C[end] * (p.U[end] - u)) }

// squares returns the squares of the steps to the area from its ends, times their coefficients.
func (p *Pin) squares(u, v float64) float64 {
	one, other := p.U[0]-u, p.U[1]-v
	return float64(p.C[0]*float64(one*one)) + float64(p.C[1]*float64(other*other))
}

// pinEast and pinNorth return the area in a face beside a point; nil for none.
func (g *ground) pinEast(ix int) *Pin {
	if g == nil || g.PinEast == nil {
		return nil
	}
	return g.PinEast[ix]
}

func (g *ground) pinNorth(ix int) *Pin {
	if g == nil || g.PinNorth == nil {
		return nil
	}
	return g.PinNorth[ix]
}

// markPins finds the regions of the areas in the faces of the newest row, and of those to the row above.
func (t *Tally) markPins(own bool) {
	l := &t.now
	l.pins = [2]map[int][2]int{}
	if l.ground == nil || !t.areas {
		return
	}
	mark := func(k, ix int, pin *Pin, counts bool) {
		if pin == nil {
			return
		}
		if l.pins[k] == nil {
			l.pins[k] = map[int][2]int{}
		}
		at := t.pinLabels(pin)
		l.pins[k][ix] = at
		for i := 0; i < 2 && counts; i++ {
			if pin.C[i] > 0 {
				t.labels.of(at[i]).Between.add(int(pin.Place[i][0]+0.5), int(pin.Place[i][1]+0.5), pin.U[i])
			}
		}
	}
	for _, ix := range l.pinned[0] {
		mark(0, ix, l.pinEast(ix), own)
	}
	for _, ix := range l.pinned[1] {
		if t.old.iy == l.iy-1 {
			mark(1, ix, l.pinNorth(ix), true)
		}
	}
}

// findPins finds the faces of a row in which areas lie.
func (t *Tally) findPins(l *line) {
	if l.ground == nil || !t.areas {
		return
	}
	first, end := t.facesInRow()
	for ix := first; ix < end && l.PinEast != nil; ix++ {
		if l.PinEast[ix] != nil {
			l.pinned[0] = append(l.pinned[0], ix)
		}
	}
	for ix := t.lo; ix < t.hi && l.PinNorth != nil; ix++ {
		if l.PinNorth[ix] != nil {
			l.pinned[1] = append(l.pinned[1], ix)
		}
	}
}

// pinLabels returns the labels of the two sides of an area.
func (t *Tally) pinLabels(pin *Pin) [2]int {
	switch {
	case t.named:
		return pin.Region
	case t.part.Dropped:
		return [2]int{}
	}
	at := t.labels.add()
	if pin.U[0] != pin.U[1] && !t.problem.Joined(pin.Place[0], pin.Place[1]) {
		return [2]int{at, t.labels.add()}
	}
	return [2]int{at, at}
}

// facesInRow returns the columns from which faces lead to the next one.
func (t *Tally) facesInRow() (from, to int) {
	if t.mesh.PeriodicColumns() {
		from = 1
	}
	return from, t.mesh.NX - 1
}

// item is a fixed point at a corner of a cell, or a side of an area in one of its faces.
type item struct {
	label int
	value float64
	place [2]float64
	point bool
}

// joinPins joins the regions of areas in the faces of the cells between the two newest rows, and of fixed points there.
func (t *Tally) joinPins() {
	above, below := t.old, t.now
	if t.named || t.part.Dropped || !t.areas {
		return
	}
	pins := len(above.pins[0])+len(below.pins[0])+len(below.pins[1]) > 0
	if !pins && (above.fixed == nil || below.fixed == nil) {
		return
	}
	var list []item
	for _, ix := range t.meetings() {
		if !pins && (t.labelAt(above, ix) < 0) == (t.labelAt(above, ix+1) < 0) {
			continue // no two fixed corners lie across from each other alone
		}
		list = t.fixedCorners(list[:0], ix)
		known := len(list)
		if known == 2 && list[0].place[1] != list[1].place[1] && list[0].place[0] != list[1].place[0] {
			known = 0
		}
		list = t.sides(list, 0, above, ix)
		list = t.sides(list, 1, below, ix)
		old := len(list)
		list = t.sides(list, 0, below, ix)
		_, next := t.place(below.iy, ix+1)
		if !t.mesh.PeriodicColumns() {
			next = ix + 1
		}
		list = t.sides(list, 1, below, next)
		for i := known; i < len(list); i++ {
			begins := i >= old
			for k := range i {
				if a, b := list[i], list[k]; !a.point && a.value == b.value || t.problem.Joined(a.place, b.place) {
					t.labels.join(a.label, b.label)
					begins = false
				}
			}
			if begins {
				t.part.Begun++
			}
		}
	}
	if t.part.Begun > maxRuns {
		t.drop()
	}
}

// meetings returns, in order, the cells between the two newest rows in which regions may meet: those at the ends of
// runs of the row above, and with an area in one of their faces.
func (t *Tally) meetings() (cells []int) {
	for _, r := range t.old.runs {
		cells = append(cells, r.lo-1, r.hi-1)
	}
	for _, columns := range [][]int{t.old.pinned[0], t.now.pinned[0], t.now.pinned[1]} {
		for _, ix := range columns {
			cells = append(cells, ix-1, ix)
		}
	}
	first, end := t.facesInRow()
	if t.mesh.PeriodicColumns() {
		cells = append(cells, end-1)
	}
	slices.Sort(cells)
	return slices.DeleteFunc(slices.Compact(cells), func(ix int) bool { return ix < first || ix >= end })
}

// labelAt returns the label of a point; -1 for none.
func (t *Tally) labelAt(l line, ix int) int {
	if t.mesh.PeriodicColumns() && ix == t.hi {
		ix = t.lo
	}
	i, _ := slices.BinarySearchFunc(l.runs, ix+1, func(r run, end int) int { return cmp.Compare(r.hi, end) })
	if i == len(l.runs) || ix < l.runs[i].lo {
		return -1
	}
	return l.runs[i].label
}

// fixedCorners adds the fixed corners of the cell below and to the right of column ix of the row above to a list.
func (t *Tally) fixedCorners(list []item, ix int) []item {
	for _, l := range [2]line{t.old, t.now} {
		for column := ix; column <= ix+1; column++ {
			if label := t.labelAt(l, column); label >= 0 {
				place := [2]float64{float64(column), float64(l.iy)}
				list = append(list, item{label, l.values[column], place, true})
			}
		}
	}
	return list
}

// sides adds both sides of the area in a face of a row to a list: that to the next column, or to the row above.
func (t *Tally) sides(list []item, face int, l line, ix int) []item {
	at, ok := l.pins[face][ix]
	if !ok {
		return list
	}
	pin := l.pinEast(ix)
	if face == 1 {
		pin = l.pinNorth(ix)
	}
	for k := range 2 {
		list = append(list, item{label: at[k], value: pin.U[k], place: pin.Place[k]})
	}
	return list
}

// addPin adds the flux of an area between two points to its regions, and takes it from a wall at its end.
func (t *pair) addPin(pin *Pin, labels [2]int, a line, ax int, b line, bx int, weight float64) {
	for i, end := range []struct {
		line
		ix int
	}{{a, ax}, {b, bx}} {
		flux := float64(weight * pin.flux(i, end.values[end.ix]))
		t.region(labels[i]).Add(flux)
		if wall := t.owner(end.line, end.ix); wall != nil {
			wall.Add(-flux)
		}
	}
}
