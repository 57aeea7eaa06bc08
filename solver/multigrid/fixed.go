package multigrid

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"jacobi/solver"
)

// Columns is the columns [Lo, Hi) of a row.
type Columns struct{ Lo, Hi int }

// Fixed is the fixed points of a level inside its mesh: by row of the mesh, the runs of columns, in order.
type Fixed [][]Columns

// FixedPoints returns the fixed points of every level. A point of a coarser level is fixed if a fixed fine point lies
// less than one coarse interval away from it in both directions: if its correction would change that point. So a
// correction is 0 at all fixed points, whatever the level from which it comes.
func (p *Plan) FixedPoints(rows solver.FixedRows) ([]Fixed, error) {
	finest, err := readFixed(p.Levels[0].Mesh, rows)
	if err != nil {
		return nil, err
	}
	all := []Fixed{finest}
	for l := range p.Levels[1:] {
		all = append(all, p.coarsen(l, all[l]))
	}
	return all, nil
}

// readFixed reads the fixed points of the finest level, on all cores.
func readFixed(m solver.Mesh, rows solver.FixedRows) (Fixed, error) {
	fixed, threads := make(Fixed, m.NY), runtime.GOMAXPROCS(0)
	errs := make([]error, threads)
	var work sync.WaitGroup
	for k := range threads {
		work.Go(func() {
			points := make([]bool, m.NX)
			for y := k; y < m.NY && errs[k] == nil; y += threads {
				if err := rows.FixedRow(y, points); err != nil {
					errs[k] = fmt.Errorf("fixed points of row %d: %w", y, err)
				}
				fixed[y] = runs(points, m)
			}
		})
	}
	work.Wait()
	return fixed, errors.Join(errs...)
}

// coarsen returns the fixed points of level l+1; fine are those of level l.
func (p *Plan) coarsen(l int, fine Fixed) Fixed {
	level, m := &p.Levels[l], p.Levels[l+1].Mesh
	near, points := make([]bool, level.Mesh.NX), make([]bool, m.NX)
	coarse, rows := make(Fixed, m.NY), m.Interior()
	lo, hi := m.InteriorColumns()
	for y := rows.Lo; y < rows.Hi; y++ {
		clear(near)
		first, n := level.Y.Around(y)
		for i := first; i < first+n; i++ {
			if row, ok := level.Mesh.Canonical(i); ok {
				for _, r := range fine[row] {
					for x := r.Lo; x < r.Hi; x++ {
						near[x] = true
					}
				}
			}
		}
		if m.PeriodicColumns() {
			near[0], near[len(near)-1] = near[len(near)-2], near[1]
		}
		for x := lo; x < hi; x++ {
			first, n := level.X.Around(x)
			points[x] = slices.Contains(near[max(0, first):min(len(near), first+n)], true)
		}
		coarse[y] = runs(points, m)
	}
	return coarse
}

// runs returns the runs of a row in the columns that a sweep updates.
func runs(points []bool, m solver.Mesh) (r []Columns) {
	lo, hi := m.InteriorColumns()
	for x := lo; x < hi; x++ {
		switch n := len(r); {
		case !points[x]:
		case n > 0 && r[n-1].Hi == x:
			r[n-1].Hi++
		default:
			r = append(r, Columns{x, x + 1})
		}
	}
	return r
}
