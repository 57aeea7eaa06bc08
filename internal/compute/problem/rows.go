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
	faced     recent[faces]
	equations stencil
	row       int // of equations; -1 for none
}

// idleRows are those of a problem that nobody uses, the one that was given back last at the end.
type idleRows struct {
	mu   sync.Mutex
	list []*rows
	made int

	grounds  sharing[material]
	outsides sharing[[]bool]
	frees    sharing[[]bool]
	faced    sharing[faces]
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

// recent are the results of work on the rows that one goroutine has used last. It never needs more than these at once.
type recent[T any] struct {
	rows [4]struct {
		iy, used int // used 0 is an empty place
		of       *shared[T]
	}
	uses int
}

// has reports whether row iy is among them.
func (c *recent[T]) has(iy int) bool {
	for i := range c.rows {
		if c.rows[i].used > 0 && c.rows[i].iy == iy {
			return true
		}
	}
	return false
}

// at returns what work has made of row iy, here or in another goroutine. It stays until three other rows were asked
// for.
func (c *recent[T]) at(iy int, all *sharing[T], work func(iy int, to *T) error) (*T, error) {
	c.uses++
	oldest := &c.rows[0]
	for i := range c.rows {
		r := &c.rows[i]
		if r.used > 0 && r.iy == iy {
			r.used = c.uses
			return &r.of.of, nil
		}
		if r.used < oldest.used {
			oldest = r
		}
	}
	if oldest.used > 0 {
		all.give(oldest.iy, oldest.of)
	}
	oldest.used = 0
	of := all.take(iy)
	of.once.Do(func() { of.err = work(iy, &of.of) })
	if err := of.err; err != nil {
		all.give(iy, of) // from here on another row may use it
		return new(T), err
	}
	oldest.iy, oldest.used, oldest.of = iy, c.uses, of
	return &of.of, nil
}

// sharing has the rows, or blocks of an array, that goroutines use, so that one is worked out once for all who want it.
// Memory that nobody uses is used again.
type sharing[T any] struct {
	keep int // rows that stay while nobody uses them
	mu   sync.Mutex
	rows map[int]*shared[T]
	idle []int // of rows, those that nobody uses, the oldest first
	free []*shared[T]
}

// shared is what work has made of a row. Who needs it meanwhile waits.
type shared[T any] struct {
	once  sync.Once
	of    T
	err   error
	users int
}

// use calls do with what work makes of a row.
func (s *sharing[T]) use(iy int, work func(iy int, to *T) error, do func(T)) error {
	r := s.take(iy)
	defer s.give(iy, r)
	r.once.Do(func() { r.err = work(iy, &r.of) })
	if r.err == nil {
		do(r.of)
	}
	return r.err
}

func (s *sharing[T]) take(iy int) *shared[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[iy]
	if n := len(s.free); r == nil && n > 0 {
		r, s.free = s.free[n-1], s.free[:n-1]
		r.once, r.err = sync.Once{}, nil
	} else if r == nil {
		r = &shared[T]{}
	}
	if s.rows == nil {
		s.rows = map[int]*shared[T]{}
	}
	s.rows[iy] = r
	if r.users++; r.users == 1 && s.keep > 0 {
		s.idle = slices.DeleteFunc(s.idle, func(i int) bool { return i == iy })
	}
	return r
}

func (s *sharing[T]) give(iy int, r *shared[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	if s.idle = append(s.idle, iy); len(s.idle) > s.keep {
		s.free = append(s.free, s.rows[s.idle[0]])
		delete(s.rows, s.idle[0])
		s.idle = append(s.idle[:0], s.idle[1:]...)
	}
}

// sized returns values with the length n, which may be of use already.
func sized[T any](values []T, n int) []T {
	if cap(values) < n {
		return make([]T, n)
	}
	return values[:n]
}
