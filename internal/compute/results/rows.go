package results

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"jacobi/solver"
)

// RowUser works something out from the rows of a finished field. A Tally is one.
type RowUser interface {
	// Look works on the next rows, beside other batches, and returns what is left to do for them.
	Look(b Batch) (Steps, error)
}

// Steps are what is left to do for a batch that was looked at.
type Steps struct {
	// Add adds the rows to what is known of those above: one batch after the other, from top to bottom.
	Add func() error
	// Rest works on the rows after Add, beside all steps of other batches. End then adds that: one batch after the
	// other, too, and not beside Add. Both are nil for none.
	Rest func() error
	End  func()
}

// Batch is rows of the mesh that follow each other. They stay as they are until the batch has ended, the last two until
// the next one has.
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
	going   []*going    // batches that have not ended
	added   int         // of these
	newest  [][]float64 // the last two rows of batches that have ended
	free    [][]float64 // buffers
	next    int         // row
}

// going is a batch in work.
type going struct {
	Batch
	decoded chan struct{} // closed once the rows are decoded
	looked  chan struct{} // closed once all users have looked
	rested  chan struct{} // closed once Rest is done; nil before Add
	steps   []Steps       // of the users
	err     error
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
	return r.add(first, rows, true)
}

// batchRows returns the number of rows of a batch: about a mebibyte, less where each core would not have some batches,
// and fewBatch at least.
func (r *Rows) batchRows() int {
	return max(fewBatch, min(1<<20/(8*r.mesh.NX), r.stripe.Rows()/(4*runtime.GOMAXPROCS(0))))
}

// fewBatch is the least number of rows of a batch. Two batches need some of the same rows of the problem.
const fewBatch = 4

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
		err = r.endOldest()
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

// add has the users look at rows, a batch a core, and returns once they are decoded.
func (r *Rows) add(iy int, rows []byte, own bool) error {
	size, cores := r.mesh.RowBytes(), runtime.GOMAXPROCS(0)
	for n := r.batchRows() * size; len(rows) > 0; rows = rows[min(n, len(rows)):] {
		if err := r.proceed(); err != nil {
			return err
		}
		if len(r.going) > cores+cores/2 { // some wait for those above them
			if err := r.endOldest(); err != nil {
				return err
			}
		}
		r.begin(iy, rows[:min(n, len(rows))], own)
		iy = r.next
	}
	for _, g := range r.going {
		<-g.decoded
	}
	return nil
}

// begin has the users look at the next batch. Of the batches above, the last one alone may not be decoded yet: it has
// fewBatch rows or more.
func (r *Rows) begin(iy int, rows []byte, own bool) {
	g := &going{Batch: Batch{IY: iy, Own: own}, decoded: make(chan struct{}), looked: make(chan struct{})}
	for range len(rows) / r.mesh.RowBytes() {
		g.Rows = append(g.Rows, r.buffer())
	}
	var above chan struct{} // closed once the rows above are decoded; nil if they are
	if n := len(r.going); n > 0 && iy == r.next {
		last := r.going[n-1]
		g.Above, above = [2][]float64{last.row(len(last.Rows) - 2), last.row(len(last.Rows) - 1)}, last.decoded
	} else if iy == r.next {
		copy(g.Above[2-len(r.newest):], r.newest)
	}
	r.going, r.next = append(r.going, g), iy+len(g.Rows)
	go func() {
		defer close(g.looked)
		for i, row := range g.Rows {
			r.mesh.DType.Decode(row, rows[i*r.mesh.RowBytes():][:r.mesh.RowBytes()])
		}
		if close(g.decoded); above != nil {
			<-above
		}
		for _, u := range r.users {
			steps, err := u.Look(g.Batch)
			if err != nil {
				g.err = err
				return
			}
			g.steps = append(g.steps, steps)
		}
	}()
}

// proceed adds the next batches that the users have looked at, and ends the oldest ones that are done.
func (r *Rows) proceed() error {
	for r.added < len(r.going) && isClosed(r.going[r.added].looked) {
		if err := r.addNext(); err != nil {
			return err
		}
	}
	for r.added > 0 && isClosed(r.going[0].rested) {
		if err := r.endOldest(); err != nil {
			return err
		}
	}
	return nil
}

// isClosed reports whether a channel is closed, on which nothing is sent.
func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// addNext adds the next batch once the users have looked at it. After an error no batch is in work.
func (r *Rows) addNext() error {
	g := r.going[r.added]
	<-g.looked
	for _, s := range g.steps {
		if g.err == nil {
			g.err = s.Add()
		}
	}
	if g.err != nil {
		return r.giveUp()
	}
	r.added++
	g.rested = make(chan struct{})
	go func() {
		defer close(g.rested)
		for _, s := range g.steps {
			if s.Rest != nil && g.err == nil {
				g.err = s.Rest()
			}
		}
	}()
	return nil
}

// endOldest ends the oldest batch. After an error no batch is in work.
func (r *Rows) endOldest() error {
	if r.added == 0 {
		if err := r.addNext(); err != nil {
			return err
		}
	}
	g := r.going[0]
	if <-g.rested; g.err != nil {
		return r.giveUp()
	}
	for _, s := range g.steps {
		if s.End != nil {
			s.End()
		}
	}
	r.going, r.added = r.going[1:], r.added-1
	r.newest = append(r.newest, g.Rows...)
	old := max(0, len(r.newest)-2)
	r.free = append(r.free, r.newest[:old]...)
	r.newest = slices.Delete(r.newest, 0, old)
	return nil
}

// Wait waits for the batches in work, and gives them up.
func (r *Rows) Wait() { _ = r.giveUp() }

// giveUp is Wait. It returns the error of the topmost batch that has one.
func (r *Rows) giveUp() (err error) {
	for _, g := range r.going {
		if <-g.looked; g.rested != nil {
			<-g.rested
		}
		err = cmp.Or(err, g.err)
	}
	r.going, r.added = nil, 0
	return err
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
