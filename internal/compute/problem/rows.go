package problem

import (
	"slices"
	"sync"
	"sync/atomic"
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

// idleRows are those of a problem that nobody uses. Cores take and give them without a lock.
type idleRows struct {
	places []idlePlace // as many as cores
	made   atomic.Int64

	grounds  sharing[material]
	outsides sharing[[]bool]
	frees    sharing[[]bool]
	faced    sharing[faces]
}

// idlePlace has rows that nobody uses, and the row for which they were taken last.
type idlePlace struct {
	rows atomic.Pointer[rows] // nil for none
	last atomic.Int64         // a hint
}

// stride is how many rows further a goroutine mostly goes on.
const stride = 3

// take returns rows for work on row iy: those that were used beside it last, if there are any. The caller gives them
// back.
func (p *Problem) take(iy int) *rows {
	r := p.idle.pick(func(last int) bool { return max(iy-last, last-iy) <= stride })
	if r == nil && p.idle.made.Load() >= int64(len(p.idle.places)) {
		r = p.idle.pick(func(int) bool { return true })
	}
	if r == nil {
		p.idle.made.Add(1)
		r = &rows{Problem: p, row: -1}
	}
	r.last = iy
	return r
}

// pick takes the rows of a place whose last row is wanted; nil without one.
func (i *idleRows) pick(wanted func(last int) bool) *rows {
	for k := range i.places {
		at := &i.places[k]
		if r := at.rows.Load(); r != nil && wanted(int(at.last.Load())) && at.rows.CompareAndSwap(r, nil) {
			return r
		}
	}
	return nil
}

// give gives rows back.
func (p *Problem) give(r *rows) {
	for k := range p.idle.places {
		at := &p.idle.places[k]
		if at.rows.Load() != nil {
			continue
		}
		if at.last.Store(int64(r.last)); at.rows.CompareAndSwap(nil, r) {
			return
		}
	}
	p.idle.made.Add(-1) // more goroutines than cores have taken rows
	r.ground.clear(&p.idle.grounds)
	r.outsides.clear(&p.idle.outsides)
	r.frees.clear(&p.idle.frees)
	r.faced.clear(&p.idle.faced)
}

// forget has equations worked out anew. Nobody uses rows meanwhile.
func (i *idleRows) forget() {
	for k := range i.places {
		if r := i.places[k].rows.Load(); r != nil {
			r.row = -1
		}
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

// clear gives up all rows.
func (c *recent[T]) clear(all *sharing[T]) {
	for _, r := range c.rows {
		if r.used > 0 {
			all.give(r.iy, r.of)
		}
	}
	*c = recent[T]{}
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
// Memory that nobody uses is used again. Rows are spread over shards, so that few cores wait for the same lock. Those
// that are kept are all in one shard, which knows which of them was used last.
type sharing[T any] struct {
	keep   int // rows that stay while nobody uses them
	shards [shards]shard[T]
	free   sync.Pool // of *shared[T]; a core mostly gets what it gave last, which is in its cache
}

// shards is the number of shards of shared rows. Neighbouring rows have different ones, mostly, and so have those of
// cores that walk downwards in step.
const shards = 16

// shard is some of the shared rows.
type shard[T any] struct {
	mu   sync.Mutex
	rows map[int]*shared[T]
	idle []int // of rows, those that nobody uses, the oldest first
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

// shard returns that of a row.
func (s *sharing[T]) shard(iy int) *shard[T] {
	if s.keep > 0 {
		return &s.shards[0]
	}
	return &s.shards[uint(iy^iy/shards^iy/(shards*shards))%shards]
}

func (s *sharing[T]) take(iy int) *shared[T] {
	own := s.shard(iy)
	own.mu.Lock()
	defer own.mu.Unlock()
	r := own.rows[iy]
	if r == nil {
		if r, _ = s.free.Get().(*shared[T]); r == nil {
			r = new(shared[T])
		}
		r.once, r.err = sync.Once{}, nil
	}
	if own.rows == nil {
		own.rows = map[int]*shared[T]{}
	}
	own.rows[iy] = r
	if r.users++; r.users == 1 && s.keep > 0 {
		own.idle = slices.DeleteFunc(own.idle, func(i int) bool { return i == iy })
	}
	return r
}

func (s *sharing[T]) give(iy int, r *shared[T]) {
	own := s.shard(iy)
	own.mu.Lock()
	defer own.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	if own.idle = append(own.idle, iy); len(own.idle) > s.keep {
		s.free.Put(own.rows[own.idle[0]])
		delete(own.rows, own.idle[0])
		own.idle = append(own.idle[:0], own.idle[1:]...)
	}
}

// sized returns values with the length n, which may be of use already.
func sized[T any](values []T, n int) []T {
	if cap(values) < n {
		return make([]T, n)
	}
	return values[:n]
}
