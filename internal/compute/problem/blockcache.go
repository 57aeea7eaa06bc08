package problem

import (
	"runtime"
	"sync"
)

// kept is how many blocks are kept: those that each goroutine reads, and the ones beside them.
func kept() int { return 2*runtime.GOMAXPROCS(0) + 4 }

// blockCache keeps the blocks of an array that were read last, since several rows of a block are read one after the
// other, by several goroutines. Their memory is used again.
type blockCache struct {
	bytes int // of a block, at most
	mu    sync.Mutex
	held  map[int]*heldBlock
	order []int // of held, the oldest first
	free  [][]byte
}

type heldBlock struct {
	load  func() error
	data  []byte
	users int
	gone  bool // no longer in the cache
}

// use calls do with block k, which load fills. Others that want the block wait for it.
func (c *blockCache) use(k int, load func(k int, data []byte) error, do func(data []byte)) error {
	b := c.take(k, load)
	defer c.release(b)
	err := b.load()
	if err == nil {
		do(b.data)
	}
	return err
}

func (c *blockCache) take(k int, load func(k int, data []byte) error) *heldBlock {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.held[k]
	if !ok {
		b = &heldBlock{}
		if n := len(c.free); n > 0 {
			b.data, c.free = c.free[n-1], c.free[:n-1]
		} else {
			b.data = make([]byte, c.bytes)
		}
		b.load = sync.OnceValue(func() error { return load(k, b.data) })
		if c.held == nil {
			c.held = map[int]*heldBlock{}
		}
		c.held[k], c.order = b, append(c.order, k)
	}
	b.users++
	if len(c.order) > kept() {
		old := c.held[c.order[0]]
		delete(c.held, c.order[0])
		c.order = c.order[1:]
		old.gone = true
		c.recycle(old)
	}
	return b
}

func (c *blockCache) release(b *heldBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.users--
	c.recycle(b)
}

// recycle frees the memory of a block that is gone and that nobody uses.
func (c *blockCache) recycle(b *heldBlock) {
	if b.gone && b.users == 0 {
		c.free = append(c.free, b.data)
	}
}
