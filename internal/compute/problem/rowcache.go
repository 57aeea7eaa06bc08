package problem

import (
	"runtime"
	"sync"
)

// rowCache keeps what was worked out for some rows, since rows are read one after the other, each more than once and by
// several goroutines.
type rowCache[T any] struct {
	mu    sync.Mutex
	rows  map[int]func() (T, error)
	order []int // of rows, the oldest first
}

// kept is how many rows are kept: those that each goroutine reads, and the ones beside them.
func kept() int { return 2*runtime.GOMAXPROCS(0) + 4 }

// clear forgets all rows.
func (c *rowCache[T]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows, c.order = nil, nil
}

// at returns what work makes of row iy. Others that want the row wait for it.
func (c *rowCache[T]) at(iy int, work func(iy int) (T, error)) (T, error) {
	c.mu.Lock()
	row, ok := c.rows[iy]
	if !ok {
		row = sync.OnceValues(func() (T, error) { return work(iy) })
		if c.rows == nil {
			c.rows = map[int]func() (T, error){}
		}
		c.rows[iy], c.order = row, append(c.order, iy)
	}
	if len(c.order) > kept() {
		delete(c.rows, c.order[0])
		c.order = c.order[1:]
	}
	c.mu.Unlock()
	return row()
}
