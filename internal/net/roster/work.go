package roster

import (
	"sync"
	"sync/atomic"
	"time"
)

// work counts what the ranks of a run work out before and after their iterations, which may take any time and differ
// between ranks. While it goes on somewhere, the clock of the run stands still, so that no rank gives up one that is at
// work. A rank tells of its work in its beats, and rank 0 of that of all.
type work struct {
	fresh atomic.Bool // this rank has worked since counted was

	mu      sync.Mutex
	counted uint64         // of this rank
	told    map[int]uint64 // by other ranks
	known   uint64         // the sum of all
	grown   time.Time      // when known was larger than before
	pause   time.Duration  // for how long nothing may be heard of work that goes on
}

// patience is the number of beats within which work is heard of: two take it to a rank by way of rank 0.
const patience = 3

// Worked notes a step of what this rank works out, such as some values of a row. It may be called very often.
func (t *Comm) Worked() {
	for t.parent != nil {
		t = t.parent
	}
	if !t.work.fresh.Load() { // otherwise many threads would write to one place
		t.work.fresh.Store(true)
	}
}

// own counts the work of this rank: one for each look at which there was some since the look before.
func (w *work) own() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fresh.Swap(false) {
		w.counted++
	}
	return w.counted
}

// begin sets the interval at which other ranks report their work.
func (w *work) begin(interval time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pause = patience * interval
}

// hear notes the count of another rank.
func (w *work) hear(rank int, count uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == nil {
		w.told = map[int]uint64{}
	}
	w.told[rank] = max(w.told[rank], count)
}

// sum returns the work of this rank and of those that it hears.
func (w *work) sum() uint64 {
	sum := w.own()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, count := range w.told {
		sum += count
	}
	return sum
}

// goesOn reports whether a rank is at work.
func (w *work) goesOn() bool {
	sum := w.sum()
	w.mu.Lock()
	defer w.mu.Unlock()
	if sum > w.known {
		w.known, w.grown = sum, time.Now()
	}
	return time.Since(w.grown) < w.pause
}
