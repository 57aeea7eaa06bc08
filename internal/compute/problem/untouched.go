package problem

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"jacobi/internal/base/parallel"
)

// searches is how often a cell of the mesh is halved each way in search of a fixed area within it.
const searches = 5

// untouched returns a warning of a fixed area that has no effect, since neither a point of the mesh touches it nor one
// beside it is fixed; "" without one, or if ctx ends before.
func (p *Problem) untouched(ctx context.Context) string {
	if !p.Areas() {
		return ""
	}
	lo, hi := p.columnsOfFaces(true)
	first, rows := 0, p.mesh.NY-1
	if p.mesh.PeriodicRows() {
		first, rows = 1, p.mesh.NY-2
	}
	found := make([]*spot, rows)
	var lowest atomic.Int64
	lowest.Store(int64(rows))
	errFound := errors.New("found")
	_ = parallel.Each(rows, func(i int) error { // it looks at what it finds
		if int64(i) > lowest.Load() || ctx.Err() != nil {
			return nil
		}
		iy := first + i
		cells := func(lo, hi int) box { return box{float64(lo), float64(hi), float64(iy), float64(iy + 1)} }
		return p.fixed.node.eachJump(lo, hi, cells, func(n node, ix int) error {
			if p.fixedBeside(iy, ix) {
				return nil
			}
			if found[i] = n.find(cells(ix, ix+1), searches); found[i] == nil {
				return nil
			}
			for low := lowest.Load(); int64(i) < low && !lowest.CompareAndSwap(low, int64(i)); low = lowest.Load() {
			}
			return errFound
		})
	})
	for _, at := range found {
		if at != nil {
			nx, ny := intervals(p.mesh)
			return fmt.Sprintf("%s %q: the area around x = %.4g, y = %.4g lies between points of the mesh, and has no "+
				"effect; take more points", p.fixed.key, p.fixed.text, at.x/nx, at.y/ny)
		}
	}
	return ""
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
