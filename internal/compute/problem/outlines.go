package problem

import (
	"context"
	"math"
	"slices"

	"jacobi/internal/base/parallel"
)

const (
	outlineCells  = 1021    // columns and rows of the cells of areas; few edges lie between cells of a prime number
	outlineRows   = 512     // columns and rows of points of arrays
	outlinePoints = 1 << 21 // of the rows that are read of arrays
	maxOutlines   = 1 << 13
	leastContrast = 1.5 // of two coefficients between which there is an interface
)

// Outlines returns the lines around fixed areas and areas outside the material, and the interfaces of materials: x and
// y of both ends, in points of the mesh. They run along the sides of evenly spread cells between neighbours that look
// different. Where fixed points or coefficients are known at points alone, a cell lies around a point. If there are too
// many lines to help, it returns none. It stops when ctx ends.
func (p *Problem) Outlines(ctx context.Context) ([][4]float64, error) {
	if p.fixed.none() && p.coefficient.constant() {
		return nil, nil
	}
	o := &outliner{p: p, areas: p.fixed.covers() && p.coefficient.covers()}
	err := error(nil)
	if o.areas {
		o.columns, o.rows = evenly(p.mesh.NX-1), evenly(p.mesh.NY-1)
		o.looks = make([]uint64, outlineCells*outlineCells)
		err = o.lookAtAreas(ctx, 0, outlineCells, 0, outlineCells)
	} else {
		err = o.lookAtPoints(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, side := range []struct {
		places []float64
		points int
	}{{o.columns, p.mesh.NX}, {o.rows, p.mesh.NY}} { // to the rim of pictures
		side.places[0], side.places[len(side.places)-1] = -0.5, float64(side.points)-0.5
	}
	if lines := o.lines(); len(lines) <= maxOutlines {
		return lines, nil
	}
	return nil, nil
}

// outliner finds outlines between cells.
type outliner struct {
	p             *Problem
	areas         bool
	columns, rows []float64 // the places between cells, with both ends
	// looks are those of cells, in rows: fixedLook, the branches of the coefficient, or the bits of that of points.
	looks []uint64
}

const fixedLook = math.MaxUint64

// lookAtPoints looks at evenly spread points.
func (o *outliner) lookAtPoints(ctx context.Context) error {
	mesh := o.p.mesh
	columns := spread(0, mesh.NX, outlineRows)
	rows := spread(0, mesh.NY, min(outlineRows, max(2, outlinePoints/mesh.NX)))
	o.columns, o.rows = between(columns), between(rows)
	r := o.p.take(0)
	defer o.p.give(r)
	for _, iy := range rows {
		if err := ended(ctx); err != nil {
			return err
		}
		iy, _ = mesh.Canonical(iy)
		m, err := r.material(iy)
		if err != nil {
			return err
		}
		for _, ix := range columns {
			look := math.Float64bits(m.a[ix])
			if m.fixed != nil && m.fixed[ix] {
				look = fixedLook
			}
			o.looks = append(o.looks, look)
		}
	}
	return nil
}

// lookAtAreas looks at the cells of a part of the grid: at once where bounds tell that they look alike.
func (o *outliner) lookAtAreas(ctx context.Context, left, right, top, bottom int) error {
	if err := ended(ctx); err != nil {
		return err
	}
	b := box{o.columns[left], o.columns[right], o.rows[top], o.rows[bottom]}
	fixed, a := o.p.fixed.node.limit(b), o.p.coefficient.node.limit(b)
	alike := fixed.decided() && (fixed.lo != 0 || !a.jumps || a.hi < leastContrast*a.lo && !a.nan)
	x, y := (left+right)/2, (top+bottom)/2
	parts := [2][4]int{{left, right, top, y}, {left, right, y, bottom}}
	switch {
	case alike || right-left == 1 && bottom-top == 1:
		look := o.lookAt(b, !fixed.decided())
		for iy := top; iy < bottom; iy++ {
			for ix := left; ix < right; ix++ {
				o.looks[iy*outlineCells+ix] = look
			}
		}
		return nil
	case right-left >= bottom-top:
		parts = [2][4]int{{left, x, top, bottom}, {x, right, top, bottom}}
	}
	for _, part := range parts {
		if err := o.lookAtAreas(ctx, part[0], part[1], part[2], part[3]); err != nil {
			return err
		}
	}
	return nil
}

// lookAt returns how the middle of a box looks. It is also fixed where an area that is thinner passes by the middle.
func (o *outliner) lookAt(b box, mayPass bool) uint64 {
	s := spot{x: halfway(b.left, b.right), y: halfway(b.top, b.bottom)}
	if o.p.fixed.node.spot(&s) != 0 || mayPass && o.passes(b, s) {
		return fixedLook
	}
	s.branches = 0
	o.p.coefficient.node.spot(&s)
	return s.branches
}

// passes reports whether a fixed area lies in a box but in none of the middles of the boxes around.
func (o *outliner) passes(b box, middle spot) bool {
	for dy := -1.0; dy <= 1; dy++ {
		for dx := -1.0; dx <= 1; dx++ {
			s := spot{x: middle.x + float64(dx*(b.right-b.left)), y: middle.y + float64(dy*(b.bottom-b.top))}
			if o.p.fixed.node.spot(&s) != 0 {
				return false
			}
		}
	}
	l := line{n: o.p.fixed.node, along: true, other: middle.y, widthless: o.p.widthless}
	_, _, across := l.extent(b.left, b.right)
	l.along, l.other = false, middle.x
	_, _, down := l.extent(b.top, b.bottom)
	return across || down
}

// lines returns the lines between cells that look different.
func (o *outliner) lines() [][4]float64 {
	columns, rows := len(o.columns)-1, len(o.rows)-1
	all := make([][][4]float64, columns-1+rows-1) // between columns, then between rows
	_ = parallel.Each(len(all), func(i int) error {
		if ix := i + 1; ix < columns {
			o.runs(rows, func(iy int) bool { return o.differ(iy*columns+ix-1, iy*columns+ix) }, func(from, to int) {
				all[i] = append(all[i], [4]float64{o.columns[ix], o.rows[from], o.columns[ix], o.rows[to]})
			})
			return nil
		}
		iy := i - columns + 2
		o.runs(columns, func(ix int) bool { return o.differ((iy-1)*columns+ix, iy*columns+ix) }, func(from, to int) {
			all[i] = append(all[i], [4]float64{o.columns[from], o.rows[iy], o.columns[to], o.rows[iy]})
		})
		return nil
	})
	return slices.Concat(all...)
}

// runs calls f with the runs [from, to) of n numbers for which on is true.
func (o *outliner) runs(n int, on func(i int) bool, f func(from, to int)) {
	for from := 0; from < n; from++ {
		to := from
		for to < n && on(to) {
			to++
		}
		if to > from {
			f(from, to)
		}
		from = to
	}
}

// differ reports whether there is a line between two cells.
func (o *outliner) differ(m, n int) bool {
	one, other := o.looks[m], o.looks[n]
	if one == other || one == fixedLook || other == fixedLook {
		return one != other
	}
	a, b := o.coefficient(m), o.coefficient(n)
	return a != b && max(a, b) >= leastContrast*min(a, b)
}

// coefficient returns that of a cell which is not fixed.
func (o *outliner) coefficient(n int) float64 {
	if !o.areas {
		return math.Float64frombits(o.looks[n])
	}
	ix, iy := n%outlineCells, n/outlineCells
	return o.p.coefficient.node.spot(&spot{x: halfway(o.columns[ix], o.columns[ix+1]),
		y: halfway(o.rows[iy], o.rows[iy+1])})
}

// evenly returns the places between the cells of a side of a length, with both ends.
func evenly(length int) []float64 {
	places := make([]float64, outlineCells+1)
	for i := range places {
		places[i] = float64(i*length) / outlineCells
	}
	return places
}

// between returns the places halfway between points, with one for each end.
func between(points []int) []float64 {
	places := make([]float64, len(points)+1)
	for i := range points[1:] {
		places[i+1] = float64(points[i]+points[i+1]) / 2
	}
	return places
}
