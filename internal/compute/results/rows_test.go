package results

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"jacobi/solver"
)

// Batches are added in order, also where a later one has been looked at first, and each knows the rows above it. After
// an error no batch is added, and none is in work.
func TestRowsAreAddedInOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // so many rows have a batch
	w := world{mesh: solver.Mesh{NX: 1 << 16, NY: 42, DType: solver.Float64,
		Walls: solver.Walls{Top: solver.Neumann, Bottom: solver.Neumann}}}
	data := make([]byte, w.mesh.NY*w.mesh.RowBytes())
	var all []int
	for iy := range w.mesh.NY {
		solver.Float64.Encode(data[iy*w.mesh.RowBytes():], []float64{float64(iy)})
		all = append(all, iy)
	}
	for _, fails := range []int{math.MaxInt, 22} {
		u := &late{others: make(chan struct{}), fails: fails}
		rows := NewRows(w, w.mesh.Interior(), u)
		err := rows.AddRows(0, data)
		if err == nil {
			err = rows.End(nil)
		}
		want := all[:min(fails/4*4, len(all))]
		if (err != nil) != (fails < len(all)) || !slices.Equal(u.added, want) || u.looking.Load() != 0 {
			t.Errorf("error %v, rows %v, want %v; %d batches are in work", err, u.added, want, u.looking.Load())
		}
	}
}

// Of several batches that fail, in whatever step, the topmost one has the error.
func TestTopmostError(t *testing.T) {
	w := world{mesh: solver.Mesh{NX: 1 << 16, NY: 12, DType: solver.Float64,
		Walls: solver.Walls{Top: solver.Neumann, Bottom: solver.Neumann}}}
	u := &failing{looked: make(chan struct{})}
	rows := NewRows(w, w.mesh.Interior(), u)
	err := rows.AddRows(0, make([]byte, w.mesh.NY*w.mesh.RowBytes()))
	if err == nil {
		err = rows.End(nil)
	}
	if err == nil || err.Error() != "the rest of row 0" {
		t.Errorf("error %v, want the rest of row 0", err)
	}
}

// failing is a RowUser that fails in Rest of the first batch, after Look has failed at the next one.
type failing struct{ looked chan struct{} }

func (f *failing) Look(b Batch) (Steps, error) {
	if b.IY == 4 {
		defer close(f.looked)
		return Steps{}, errors.New("a look at row 4")
	}
	rest := func() error {
		<-f.looked
		return fmt.Errorf("the rest of row %d", b.IY)
	}
	return Steps{Add: func() error { return nil }, Rest: rest}, nil
}

// late is a RowUser that has looked at the first batch after another one. It fails at a row.
type late struct {
	others  chan struct{} // closed after a look at another batch
	once    sync.Once
	fails   int
	looking atomic.Int64
	added   []int
}

func (l *late) Look(b Batch) (steps Steps, err error) {
	l.looking.Add(1)
	defer l.looking.Add(-1)
	if b.IY == 0 {
		<-l.others
	} else {
		defer l.once.Do(func() { close(l.others) })
		if b.Above[0][0] != float64(b.IY-2) || b.Above[1][0] != float64(b.IY-1) {
			return steps, errors.New("other rows are above")
		}
	}
	if b.IY <= l.fails && l.fails < b.IY+len(b.Rows) {
		return steps, errors.New("as it should")
	}
	steps.Add = func() error {
		for _, row := range b.Rows {
			l.added = append(l.added, int(row[0]))
		}
		return nil
	}
	return steps, nil
}
