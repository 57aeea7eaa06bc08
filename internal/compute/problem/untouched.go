package problem

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"jacobi/internal/base/parallel"
)

// searches is how often a cell of the mesh is halved each way in search of a fixed area within it.
const searches = 5

// lost are the first places of fixed areas that the mesh does not resolve; nil for none.
type lost struct {
	area *spot // it has no effect: no line of the mesh crosses it
	gap  *spot // between areas of two values, within one face, whose field is lost
}

// untouched returns what the mesh does not resolve of fixed areas, or nothing if ctx ends before.
func (p *Problem) untouched(ctx context.Context) (found lost) {
	if !p.Areas() {
		return found
	}
	lo, hi := p.columnsOfFaces(true)
	first, rows := 0, p.mesh.NY-1
	if p.mesh.PeriodicRows() {
		first, rows = 1, p.mesh.NY-2
	}
	byRow := make([]lost, rows)
	_ = parallel.Each(rows, func(i int) error { // it looks at what it finds
		iy := first + i
		cells := func(lo, hi int) box { return box{float64(lo), float64(hi), float64(iy), float64(iy + 1)} }
		return p.fixed.node.eachJump(lo, hi, cells, func(n node, ix int) error {
			x, y := float64(ix), float64(iy)
			sides := [4]line{{n: n, along: true, other: y, rough: true}, {n: n, other: x, rough: true},
				{n: n, along: true, other: y + 1}, {n: n, other: x + 1}}
			byRow[i].gap = cmp.Or(byRow[i].gap, p.gap(&sides[0], x), p.gap(&sides[1], y))
			if byRow[i].area != nil || p.fixedBeside(iy, ix) {
				return ctx.Err()
			}
			for k := range sides {
				from := y
				if sides[k].along {
					from = x
				}
				sides[k].widthless = p.widthless
				if _, _, ok := sides[k].extent(from, from+1); ok {
					return ctx.Err()
				}
			}
			byRow[i].area = n.find(cells(ix, ix+1), searches)
			return ctx.Err()
		})
	})
	if ctx.Err() != nil {
		return found
	}
	for _, row := range slices.Backward(byRow) {
		found = lost{cmp.Or(row.area, found.area), cmp.Or(row.gap, found.gap)}
	}
	return found
}

// gap returns a place of a line from one point to the next that is free, between two fixed ones that differ; nil for
// none.
func (p *Problem) gap(l *line, from float64) *spot {
	if !p.initial.covers() || !l.jumps(from, from+1) {
		return nil
	}
	before := -1 // the last piece that is fixed
	pieces := l.pieces(from, from+1)
	edge := func(at, sign float64, q piece) spot { return l.place(at + float64(sign*min(inward, q.length()/2))) }
	for i, q := range pieces {
		if q.branches == 0 {
			continue
		}
		if before >= 0 && before < i-1 && p.differ(edge(pieces[before].to, -1, pieces[before]), edge(q.from, 1, q)) {
			at := l.place(pieces[i-1].middle())
			return &at
		}
		before = i
	}
	return nil
}

// differ reports whether fixed areas have, or may have, other values at two places.
func (p *Problem) differ(a, b spot) bool {
	one, other := p.regionAt(&a), p.regionAt(&b)
	floats := one != other && one >= 0 && other >= 0 && (p.RegionFloats(one) || p.RegionFloats(other))
	return floats || p.initial.node.spot(&a) != p.initial.node.spot(&b)
}

// warnings returns a line for each part of fixed areas that the mesh does not resolve.
func (f lost) warnings(p *Problem) (lines []string) {
	nx, ny := intervals(p.mesh)
	if at := f.area; at != nil {
		lines = append(lines, fmt.Sprintf("%s %q: the area around x = %.4g, y = %.4g lies between the lines of the "+
			"mesh, and has no effect; take more points", p.fixed.key, p.fixed.text, at.x/nx, at.y/ny))
	}
	if at := f.gap; at != nil {
		lines = append(lines, fmt.Sprintf("%s %q: around x = %.4g, y = %.4g areas of two values lie within a spacing "+
			"of the mesh, and the field between them is lost; take more points", p.fixed.key, p.fixed.text, at.x/nx,
			at.y/ny))
	}
	return lines
}

// fixedBeside reports whether a corner of the cell to the right of and below a point is fixed, or a point beside one.
func (p *Problem) fixedBeside(iy, ix int) bool {
	for y := iy - 1; y <= iy+2; y++ {
		for x := ix - 1; x <= ix+2; x++ {
			if p.fixed.node.spot(&spot{x: float64(x), y: float64(y)}) != 0 {
				return true
			}
		}
	}
	return false
}

// find returns a place of a box where the condition holds, or nil if it finds none.
func (n node) find(b box, halvings int) *spot {
	limit := n.limit(b)
	s := &spot{x: halfway(b.left, b.right), y: halfway(b.top, b.bottom)}
	switch {
	case limit.hi == 0:
		return nil
	case n.spot(s) != 0:
		return s
	case halvings == 0:
		return nil
	}
	for _, part := range []box{{b.left, s.x, b.top, s.y}, {s.x, b.right, b.top, s.y}, {b.left, s.x, s.y, b.bottom},
		{s.x, b.right, s.y, b.bottom}} {
		if at := n.find(part, halvings-1); at != nil {
			return at
		}
	}
	return nil
}
