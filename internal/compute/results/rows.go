package results

import (
	"fmt"
	"runtime"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// RowUser works something out from the rows of a finished field. A Tally is one.
type RowUser interface {
	// Look works on the next rows, and returns what adds them to what is known of those above. Several goroutines look
	// at batches at once; the batches are added one after the other, from top to bottom.
	Look(b Batch) (add func() error, err error)
}

// Batch is rows of the mesh that follow each other. They stay as they are until the next batch has been added.
type Batch struct {
	IY    int // the first row
	Rows  [][]float64
	Above [2][]float64 // the two rows above them, the nearest one last; nil for those that were not given
	Own   bool         // false for the row of another rank; fixed walls beside the stripe are the rank's own
}

// row returns row i of the batch, or one of those above it: -1 or -2.
func (b *Batch) row(i int) []float64 {
	if i < 0 {
		return b.Above[2+i]
	}
	return b.Rows[i]
}

// Walled is a problem as Rows needs it: its mesh and the rows of its fixed walls.
type Walled interface {
	Mesh() solver.Mesh
	Row(iy int, dst []byte) error
}

// Rows decodes the rows of a stripe, once for all users. It gets them from top to bottom, and then the first row of the
// next rank.
type Rows struct {
	problem Walled
	mesh    solver.Mesh
	stripe  solver.Stripe
	users   []RowUser
	going   []*going    // batches that are not added yet
	newest  [][]float64 // the newest two rows that are added
	free    [][]float64 // buffers
	next    int         // row
}

// batchesAhead is the number of batches in work: cores that have nothing left to do in one go on with the next.
const batchesAhead = 4

// going is a batch in work.
type going struct {
	Batch
	looked chan struct{} // closed once all users have looked
	adds   []func() error
	err    error
}

// NewRows returns Rows of a stripe for users.
func NewRows(p Walled, stripe solver.Stripe, users ...RowUser) *Rows {
	return &Rows{problem: p, mesh: p.Mesh(), stripe: stripe, users: users, next: -1}
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

// batchRows returns how many rows are decoded at a time: about a mebibyte, and one for each core at least.
func (r *Rows) batchRows() int { return max(runtime.GOMAXPROCS(0), 1<<20/(8*r.mesh.NX)) }

// End adds the last row. next is the first row of the rank below, in which the mesh goes on; nil if the stripe is the
// last one and top and bottom are not periodic.
func (r *Rows) End(next []byte) error {
	if r.next != r.stripe.Hi {
		return fmt.Errorf("rows %v end before row %d", r.stripe, r.next)
	}
	var err error
	if next != nil {
		err = r.add(r.stripe.Hi, next, false)
	} else {
		err = r.wall(r.stripe.Hi, r.stripe.Hi == r.mesh.NY-1)
	}
	for len(r.going) > 0 && err == nil {
		err = r.addOldest()
	}
	return err
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

// add decodes rows, and has the users look at them.
func (r *Rows) add(iy int, rows []byte, own bool) error {
	if len(r.going) == batchesAhead {
		if err := r.addOldest(); err != nil {
			return err
		}
	}
	size := r.mesh.RowBytes()
	g := &going{Batch: Batch{IY: iy, Own: own}, looked: make(chan struct{})}
	for range len(rows) / size {
		g.Rows = append(g.Rows, r.buffer())
	}
	if n := len(r.going); n > 0 && iy == r.next {
		last := r.going[n-1]
		g.Above = [2][]float64{last.row(len(last.Rows) - 2), last.row(len(last.Rows) - 1)}
	} else if n := len(r.newest); iy == r.next {
		copy(g.Above[2-n:], r.newest)
	}
	r.next = iy + len(g.Rows)
	err := parallel.Each(len(g.Rows), func(i int) error {
		r.mesh.DType.Decode(g.Rows[i], rows[i*size:][:size])
		return nil
	})
	if err != nil {
		return err
	}
	r.going = append(r.going, g)
	go func() {
		defer close(g.looked)
		for _, u := range r.users {
			add, err := u.Look(g.Batch)
			if err != nil {
				g.err = err
				return
			}
			g.adds = append(g.adds, add)
		}
	}()
	return nil
}

// addOldest adds the oldest batch in work. After an error no batch is in work.
func (r *Rows) addOldest() error {
	g := r.going[0]
	<-g.looked
	r.going = r.going[1:]
	err := g.err
	for _, add := range g.adds {
		if err == nil {
			err = add()
		}
	}
	if err != nil {
		r.Wait()
		return err
	}
	r.newest = append(r.newest, g.Rows...)
	old := max(0, len(r.newest)-2)
	r.free = append(r.free, r.newest[:old]...)
	r.newest = slices.Delete(r.newest, 0, old)
	return nil
}

// Wait waits for the batches in work, and gives them up.
func (r *Rows) Wait() {
	for _, g := range r.going {
		<-g.looked
	}
	r.going = nil
}

// buffer returns a row to fill.
func (r *Rows) buffer() []float64 {
	n := len(r.free) - 1
	if n < 0 {
		return make([]float64, r.mesh.NX)
	}
	row := r.free[n]
	r.free = r.free[:n]
	return row
}
