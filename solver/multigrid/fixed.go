package multigrid

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Columns is the columns [Lo, Hi) of a row.
type Columns struct{ Lo, Hi int }

// FixedRuns are the fixed points of a level inside its mesh: by row of the mesh, the runs of columns, in order.
type FixedRuns [][]Columns

// FixedPoints returns the fixed points of every level. A point of a coarser level is fixed if a fixed fine point lies
// less than one coarse interval away from it in both directions: if its correction would change that point. So a
// correction is 0 at all fixed points, whatever the level from which it comes. Of a weighted operator, whose coarser
// stencils say which points are unknowns, there are only the fixed points of the finest level.
func (p *Plan) FixedPoints(rows solver.FixedRows) ([]FixedRuns, error) {
	m := p.Levels[0].Mesh
	finest := make(FixedRuns, m.NY)
	if err := finest.Read(m, rows, solver.Stripe{Hi: m.NY}); err != nil {
		return nil, err
	}
	return p.CoarserFixed(finest), nil
}

// CoarserFixed returns the fixed points of every level, as FixedPoints does, from those of the finest one.
func (p *Plan) CoarserFixed(finest FixedRuns) []FixedRuns {
	all := []FixedRuns{finest}
	if p.Weighted {
		return all
	}
	for l := range p.Levels[1:] {
		all = append(all, p.coarsen(l, all[l]))
	}
	return all
}

// Read reads rows [s.Lo, s.Hi) of the fixed points of a mesh into f, on all cores.
func (f FixedRuns) Read(m solver.Mesh, rows solver.FixedRows, s solver.Stripe) error {
	threads := runtime.GOMAXPROCS(0)
	errs := make([]error, threads)
	var work sync.WaitGroup
	for k := range threads {
		work.Go(func() {
			points := make([]bool, m.NX)
			for y := s.Lo + k; y < s.Hi && errs[k] == nil; y += threads {
				if err := rows.FixedRow(y, points); err != nil {
					errs[k] = fmt.Errorf("fixed points of row %d: %w", y, err)
				}
				f[y] = runs(points, m)
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// Encode returns rows [s.Lo, s.Hi) as unsigned varints, at least one a row: the number of runs, and for each of them
// the columns between the run before and it, and its length.
func (f FixedRuns) Encode(s solver.Stripe) (data []byte) {
	for _, row := range f[s.Lo:s.Hi] {
		data = binary.AppendUvarint(data, uint64(len(row)))
		end := 0
		for _, r := range row {
			data = binary.AppendUvarint(data, uint64(r.Lo-end))
			data = binary.AppendUvarint(data, uint64(r.Hi-r.Lo))
			end = r.Hi
		}
	}
	return data
}

// Decode sets rows [s.Lo, s.Hi), of nx columns, to what Encode has written. It fails if data is not such rows.
func (f FixedRuns) Decode(data []byte, s solver.Stripe, nx int) error {
	next := func() int {
		v, n := binary.Uvarint(data)
		if n <= 0 || v > uint64(nx) {
			return nx + 1 // beyond every row
		}
		data = data[n:]
		return int(v)
	}
	for y := s.Lo; y < s.Hi; y++ {
		count, end := next(), 0
		if count > nx {
			return fmt.Errorf("fixed points of row %d: not encoded runs of columns", y)
		}
		f[y] = nil
		for range count {
			lo := end + next()
			end = lo + next()
			if end > nx || end == lo {
				return fmt.Errorf("fixed points of row %d: not encoded runs of columns", y)
			}
			f[y] = append(f[y], Columns{lo, end})
		}
	}
	if len(data) > 0 {
		return fmt.Errorf("fixed points of rows %v: %d bytes more than their runs", s, len(data))
	}
	return nil
}

// coarsen returns the fixed points of level l+1; fine are those of level l.
func (p *Plan) coarsen(l int, fine FixedRuns) FixedRuns {
	level, m := &p.Levels[l], p.Levels[l+1].Mesh
	coarse, rows := make(FixedRuns, m.NY), m.Interior()
	lo, hi := m.InteriorColumns()
	_ = parallel.Each(rows.Rows(), func(i int) error { // never fails
		y, near, points := rows.Lo+i, make([]bool, level.Mesh.NX), make([]bool, m.NX)
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
		return nil
	})
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
