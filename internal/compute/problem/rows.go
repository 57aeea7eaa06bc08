package problem

import (
	"runtime"
	"slices"
	"sync"
)

// rows works out rows of a problem for one goroutine, which mostly walks downwards. It keeps those that it has worked
// out last, as each needs the ones beside it, and uses their memory again.
type rows struct {
	*Problem
	span      span
	last      int // the row for which it was taken last
	ground    recent[material]
	outsides  recent[[]bool]
	frees     recent[[]bool]
	sides     recent[faces]
	equations stencil
	row       int // of equations; -1 for none
}

// idleRows are those of a problem that nobody uses, the one that was given back last at the end.
type idleRows struct {
	mu   sync.Mutex
	list []*rows
	made int
}

// stride is how many rows further a goroutine mostly goes on.
const stride = 3

// take returns rows for work on row iy: those that were used beside it last, if there are any. The caller gives them
// back.
func (p *Problem) take(iy int) *rows {
	idle := &p.idle
	idle.mu.Lock()
	defer idle.mu.Unlock()
	at := len(idle.list) - 1
	for at >= 0 && max(iy-idle.list[at].last, idle.list[at].last-iy) > stride {
		at--
	}
	if at < 0 && (len(idle.list) == 0 || idle.made < runtime.GOMAXPROCS(0)) {
		idle.made++
		return &rows{Problem: p, last: iy, row: -1}
	}
	at = max(at, 0)
	r := idle.list[at]
	idle.list = slices.Delete(idle.list, at, at+1)
	r.last = iy
	return r
}

// give gives rows back.
func (p *Problem) give(r *rows) {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	p.idle.list = append(p.idle.list, r)
}

// forget has equations worked out anew. Nobody uses rows meanwhile.
func (i *idleRows) forget() {
	for _, r := range i.list {
		r.row = -1
	}
}

// recent are the results of work on the rows that were used last. Nobody needs more than these at once.
type recent[T any] struct {
	rows [4]struct {
		iy, used int // used 0 is an empty place
		of       T
	}
	uses int
}

// at returns what work has made of row iy, in memory of an older row. It stays until three other rows were asked for.
func (c *recent[T]) at(iy int, work func(iy int, to *T) error) (*T, error) {
	c.uses++
	oldest := &c.rows[0]
	for i := range c.rows {
		r := &c.rows[i]
		if r.used > 0 && r.iy == iy {
			r.used = c.uses
			return &r.of, nil
		}
		if r.used < oldest.used {
			oldest = r
		}
	}
	oldest.used = 0
	err := work(iy, &oldest.of)
	if err == nil {
		oldest.iy, oldest.used = iy, c.uses
	}
	return &oldest.of, err
}

// sized returns values with the length n, which may be of use already.
func sized[T any](values []T, n int) []T {
	if cap(values) < n {
		return make([]T, n)
	}
	return values[:n]
}
