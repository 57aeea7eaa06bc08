package multigrid

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Columns is the columns [Lo, Hi) of a row.
type Columns struct{ Lo, Hi int }

// FixedRuns are the fixed points inside a mesh: by row, the runs of columns, in order.
type FixedRuns [][]Columns

// FixedPoints returns the fixed points inside a mesh.
func FixedPoints(m solver.Mesh, rows solver.FixedRows) (FixedRuns, error) {
	f := make(FixedRuns, m.NY)
	return f, f.Read(m, rows, solver.Stripe{Hi: m.NY})
}

// Read reads rows [s.Lo, s.Hi) of the fixed points of a mesh into f, on all cores.
func (f FixedRuns) Read(m solver.Mesh, rows solver.FixedRows, s solver.Stripe) error {
	points := make([][]bool, runtime.GOMAXPROCS(0))
	return parallel.On(len(points), s.Rows(), func(k, i int) error {
		y := s.Lo + i
		if points[k] == nil {
			points[k] = make([]bool, m.NX)
		}
		if err := rows.FixedRow(y, points[k]); err != nil {
			return fmt.Errorf("fixed points of row %d: %w", y, err)
		}
		f[y] = runs(points[k], m)
		return nil
	})
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

// runs returns the runs of a row in the columns that a sweep updates.
func runs(points []bool, m solver.Mesh) (r []Columns) {
	lo, hi := m.InteriorColumns()
	for x := lo; x < hi; x++ {
		if points[x] {
			r = AppendColumn(r, x)
		}
	}
	return r
}

// AppendColumn adds a column behind all runs.
func AppendColumn(runs []Columns, x int) []Columns {
	if n := len(runs); n > 0 && runs[n-1].Hi == x {
		runs[n-1].Hi++
		return runs
	}
	return append(runs, Columns{x, x + 1})
}
