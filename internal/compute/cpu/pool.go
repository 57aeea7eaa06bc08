package cpu

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// pool is the threads of a backend. The first worker runs on the calling goroutine, the others on helpers.
type pool struct {
	workers []*worker
	helpers []*helper
	done    chan error // one result from each helper that was given work
	running sync.WaitGroup
}

// helper is a goroutine that waits for work.
type helper struct {
	work   atomic.Pointer[work]
	asleep atomic.Bool
	wake   chan struct{} // holds at most one wake-up
}

// work is the function that a helper calls next. Without do it ends the helper.
type work struct{ do func(*worker) error }

// spin is how long a thread polls before it sleeps. Waking a thread takes about as long.
const spin = 50 * time.Microsecond

func newPool(b *Backend, threads, scratch int, e solver.Magnitude) (*pool, error) {
	p := &pool{done: make(chan error, threads)}
	for i := range threads {
		m, err := newMemory(scratch)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		w := &worker{b: b, scratch: m, sums: make([]kernel.Collector, len(b.plans)-1)}
		for k := range w.sums {
			w.sums[k] = kernel.NewCollector(e, b.layout.Mesh.DType)
		}
		p.workers = append(p.workers, w)
		if i > 0 {
			h := &helper{wake: make(chan struct{}, 1)}
			p.helpers = append(p.helpers, h)
			p.running.Go(func() {
				for f := h.wait(); f.do != nil; f = h.wait() {
					p.done <- f.do(w)
				}
			})
		}
	}
	return p, nil
}

// wait returns the next work.
func (h *helper) wait() *work {
	for {
		spinUntil(func() bool { return h.work.Load() != nil })
		h.asleep.Store(true) // before the last check, so that give sees it if the check misses its work
		if h.work.Load() == nil {
			<-h.wake
		}
		h.asleep.Store(false)
		if f := h.work.Swap(nil); f != nil {
			return f
		}
	}
}

// give hands work to a helper that has none.
func (h *helper) give(f *work) {
	h.work.Store(f)
	if h.asleep.Load() {
		select {
		case h.wake <- struct{}{}:
		default: // a wake-up is pending, and the helper will check again
		}
	}
}

// spinUntil polls until the condition is met, for at most about spin.
func spinUntil(met func() bool) {
	for start := time.Now(); time.Since(start) < spin; runtime.Gosched() {
		for range 32 {
			if met() {
				return
			}
		}
	}
}

// each calls f(w, i) for 0 <= i < n, where w is worker i modulo their number, and waits for all calls. It returns their
// errors. A worker stops at its first error.
func (p *pool) each(n int, f func(w *worker, i int) error) error {
	share := func(k int) func(*worker) error {
		return func(w *worker) error {
			for i := k; i < n; i += len(p.workers) {
				if err := f(w, i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	helpers := min(len(p.helpers), max(n-1, 0))
	for k := range helpers {
		p.helpers[k].give(&work{share(k + 1)})
	}
	errs := []error{share(0)(p.workers[0])}
	if helpers > 0 {
		spinUntil(func() bool { return len(p.done) == helpers })
	}
	for range helpers {
		errs = append(errs, <-p.done)
	}
	return errors.Join(errs...)
}

func (p *pool) close() error {
	for _, h := range p.helpers {
		h.give(&work{})
	}
	p.running.Wait()
	var errs []error
	for _, w := range p.workers {
		errs = append(errs, w.scratch.free())
	}
	return errors.Join(errs...)
}
