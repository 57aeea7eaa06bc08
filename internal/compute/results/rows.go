package results

import (
	"fmt"
	"runtime"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// RowUser works something out from the rows of a finished field. A Tally is one.
type RowUser interface {
	// Add gets the next rows of the mesh, which begin at row iy. The newest two stay as they are until the next call
	// has returned. own is false for the row of another rank. Fixed walls beside the stripe are the rank's own.
	Add(iy int, rows [][]float64, own bool) error
}

// Walled is a problem as Rows needs it: its mesh, whether points have weights of their own, and the rows of its fixed
// walls.
type Walled interface {
	Mesh() solver.Mesh
	Weighted() bool
	Row(iy int, dst []byte) error
}

// Rows decodes the rows of a stripe, once for all users. It gets them from top to bottom, and then the first row of the
// next rank.
type Rows struct {
	problem Walled
	mesh    solver.Mesh
	stripe  solver.Stripe
	users   []RowUser
	batch   [][]float64 // buffers
	newest  int         // place of the newest row in batch
	next    int         // row
}

// NewRows returns Rows of a stripe for users.
func NewRows(p Walled, stripe solver.Stripe, users ...RowUser) *Rows {
	return &Rows{problem: p, mesh: p.Mesh(), stripe: stripe, users: users, newest: 1}
}

// AddRows adds dense rows of the mesh, which begin at row lo. It ignores rows outside the stripe.
func (r *Rows) AddRows(lo int, rows []byte) error {
	size := r.mesh.RowBytes()
	first, end := max(lo, r.stripe.Lo), min(lo+len(rows)/size, r.stripe.Hi)
	if first >= end {
		return nil
	}
	rows = rows[(first-lo)*size : (end-lo)*size]
	if first == r.stripe.Lo {
		if err := r.wall(0, first == 1 && r.mesh.Walls.Top == solver.Dirichlet); err != nil {
			return err
		}
	}
	for n := r.batchRows() * size; len(rows) > 0; rows = rows[min(n, len(rows)):] {
		if err := r.add(end-len(rows)/size, rows[:min(n, len(rows))], true); err != nil {
			return err
		}
	}
	return nil
}

// batchRows returns how many rows are decoded at a time: about a mebibyte, and one for each core at least. With weights
// these are several, as a core works out the rows beside its own, too.
func (r *Rows) batchRows() int {
	each := 1
	if r.problem.Weighted() {
		each = 16
	}
	return max(each*runtime.GOMAXPROCS(0), 1<<20/(8*r.mesh.NX))
}

// End adds the last row. next is the first row of the rank below, in which the mesh goes on; nil if the stripe is the
// last one and top and bottom are not periodic.
func (r *Rows) End(next []byte) error {
	if r.next != r.stripe.Hi {
		return fmt.Errorf("rows %v end before row %d", r.stripe, r.next)
	}
	if next != nil {
		return r.add(r.stripe.Hi, next, false)
	}
	return r.wall(r.stripe.Hi, r.stripe.Hi == r.mesh.NY-1)
}

// wall adds the row of a fixed wall if it is beside the stripe.
func (r *Rows) wall(iy int, beside bool) error {
	if !beside {
		return nil
	}
	row := make([]byte, r.mesh.RowBytes())
	if err := r.problem.Row(iy, row); err != nil {
		return err
	}
	return r.add(iy, row, true)
}

// add decodes rows for the users.
func (r *Rows) add(iy int, rows []byte, own bool) error {
	size := r.mesh.RowBytes()
	batch := r.buffers(len(rows) / size)
	err := parallel.Each(len(batch), func(i int) error {
		r.mesh.DType.Decode(batch[i], rows[i*size:][:size])
		return nil
	})
	for _, u := range r.users {
		if err == nil {
			err = u.Add(iy, batch, own)
		}
	}
	r.next = iy + len(batch)
	return err
}

// buffers returns n rows to fill, other ones than the newest two.
func (r *Rows) buffers(n int) [][]float64 {
	for len(r.batch) < n+2 {
		r.batch = append(r.batch, make([]float64, r.mesh.NX))
	}
	for i := range 2 {
		at := r.newest - 1 + i
		r.batch[i], r.batch[at] = r.batch[at], r.batch[i]
	}
	r.newest = n + 1
	return r.batch[2 : n+2]
}
