package cuda

import (
	"context"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// upload is an array on the device and where its rows come from.
type upload struct {
	to   field
	from solver.Reader
	what string // for errors, "" for the field
}

// newUpload returns the upload of a value of the points of an operator.
func newUpload(to field, values solver.ValueRows, k solver.Value) upload {
	return upload{to, solver.ValuesOf(values, k), k.String()}
}

// load fills arrays that hold the same rows of a mesh, in a stream. All cores read rows into one half of the staging
// memory while the other half travels. Of rows that are the same, one travels, and the device copies it.
func (d *device) load(ctx context.Context, s *driver.Stream, m solver.Mesh, arrays ...upload) error {
	width, staging := m.RowBytes(), d.staging.Bytes()
	halves, slots := 2, len(staging)/2/width/len(arrays) // rows of each array in a half
	if slots == 0 {
		halves, slots = 1, len(staging)/width/len(arrays)
	}
	if slots == 0 {
		for _, a := range arrays {
			if err := d.load(ctx, s, m, a); err != nil {
				return err
			}
		}
		return nil
	}
	rows := arrays[0].to.rows
	for i, y := 0, rows.Lo; y < rows.Hi; i++ {
		half := i % halves
		if i >= halves {
			if err := d.await(ctx, d.staged[half]); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		runs := nextRuns(m, solver.Stripe{Lo: y, Hi: rows.Hi}, arrays, slots)
		at := func(array, slot int) int { return ((half*len(arrays)+array)*slots + slot) * width }
		if err := parallel.Each(len(runs), func(r int) error {
			row, ok := m.Canonical(runs[r].Lo)
			if !ok {
				return fmt.Errorf("row %d is not of the mesh", runs[r].Lo)
			}
			for k, a := range arrays {
				if err := a.from.Row(row, staging[at(k, r):][:width]); err != nil {
					return a.failed(row, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		for k, a := range arrays {
			if err := d.put(s, a.to, runs, at(k, 0), width); err != nil {
				return err
			}
		}
		if err := d.staged[half].Record(s); err != nil {
			return err
		}
		y = runs[len(runs)-1].Hi
	}
	return d.awaitAll(ctx, s)
}

// failed says which row cannot be read.
func (u upload) failed(row int, err error) error {
	if u.what != "" {
		return fmt.Errorf("%s: row %d: %w", u.what, row, err)
	}
	return fmt.Errorf("row %d: %w", row, err)
}

// nextRuns cuts the first of rows into at most n runs of rows that are the same in all arrays.
func nextRuns(m solver.Mesh, rows solver.Stripe, arrays []upload, n int) (runs []solver.Stripe) {
	again := func(y int) bool {
		for _, a := range arrays {
			if !a.from.Repeats(m, y) {
				return false
			}
		}
		return true
	}
	for lo := rows.Lo; lo < rows.Hi && len(runs) < n; {
		hi := lo + 1
		for hi < rows.Hi && again(hi) {
			hi++
		}
		runs, lo = append(runs, solver.Stripe{Lo: lo, Hi: hi}), hi
	}
	return runs
}

// put copies the first row of each run from the staging memory, where they follow one another from an offset on, and
// then within the device to the other rows of the run.
func (d *device) put(s *driver.Stream, to field, runs []solver.Stripe, offset, width int) error {
	for len(runs) > 0 {
		n := 1 // rows that follow one another in both memories
		for n < len(runs) && runs[n-1].Rows() == 1 {
			n++
		}
		if err := s.Copy2D(to.at(runs[0].Lo).Rows(to.pitch), d.staging.Rows(offset, width), width, n); err != nil {
			return err
		}
		run := runs[n-1]
		for done := 1; done < run.Rows(); done *= 2 {
			from, next := to.at(run.Lo).Rows(to.pitch), to.at(run.Lo+done).Rows(to.pitch)
			if err := s.Copy2D(next, from, width, min(done, run.Rows()-done)); err != nil {
				return err
			}
		}
		runs, offset = runs[n:], offset+n*width
	}
	return nil
}
