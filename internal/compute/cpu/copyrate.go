package cpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	page         = 4096
	maxCopyTries = 12              // of all kinds of copy together
	minCopyTries = 4               // made however long they take
	copyTime     = 2 * time.Second // no try beyond minCopyTries begins after it
	// copyShare is the least number of bytes that a thread copies in a try, so that starting and joining the threads
	// does not count.
	copyShare = 64 << 20
)

// CopyRate measures how fast the given number of threads copies a field of the given size to another one, in bytes read
// and written a second. It returns the fastest of several tries with stores through the caches and with stores that
// bypass them. The rate is the roofline of a pass of one sweep. Each thread copies its own part, which it was the first
// to touch. CopyRate allocates two fields and takes up to a few seconds.
func CopyRate(ctx context.Context, bytes, threads int) (rate float64, err error) {
	if bytes < 1 || threads < 1 {
		return 0, fmt.Errorf("copy rate of %d bytes with %d threads: both must be at least 1", bytes, threads)
	}
	pages := (bytes + page - 1) / page
	threads = min(threads, pages)
	var fields [2]memory
	defer func() { err = errors.Join(err, fields[0].free(), fields[1].free()) }()
	for i := range fields {
		if fields[i], err = newMemory(pages * page); err != nil {
			return 0, fmt.Errorf("copy rate: %w", err)
		}
	}
	kinds := []func(dst, src []byte){func(dst, src []byte) { copy(dst, src) }}
	if stream := streamCopy(); stream != nil {
		kinds = append(kinds, stream)
	}
	comm := newCopyTeam(threads)
	defer comm.close()
	part := func(i int) (dst, src []byte) {
		lo, hi := pages*i/threads*page, pages*(i+1)/threads*page
		return fields[0][lo:hi], fields[1][lo:hi]
	}
	comm.each(func(i int) {
		dst, src := part(i)
		clear(dst)
		clear(src)
	})
	passes := max(1, threads*copyShare/(pages*page))
	begin := time.Now()
	for try := 0; try < minCopyTries || try < maxCopyTries && time.Since(begin) < copyTime; try++ {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		comm.each(func(i int) {
			dst, src := part(i)
			for range passes {
				kinds[try%len(kinds)](dst, src)
			}
		})
		rate = max(rate, 2*float64(passes)*float64(pages*page)/time.Since(start).Seconds())
	}
	return rate, nil
}

// copyTeam is a set of goroutines that run a function together.
type copyTeam struct {
	work []chan func(i int)
	busy sync.WaitGroup
}

func newCopyTeam(threads int) *copyTeam {
	t := &copyTeam{}
	for i := range threads {
		work := make(chan func(int))
		t.work = append(t.work, work)
		go func() {
			for f := range work {
				f(i)
				t.busy.Done()
			}
		}()
	}
	return t
}

// each calls f(i) on every goroutine, where i is its number, and waits for all calls.
func (t *copyTeam) each(f func(i int)) {
	t.busy.Add(len(t.work))
	for _, w := range t.work {
		w <- f
	}
	t.busy.Wait()
}

func (t *copyTeam) close() {
	for _, w := range t.work {
		close(w)
	}
}
