package cpu

import (
	"errors"
	"sync"

	"jacobi/internal/cpu/kernel"
	"jacobi/solver"
)

// pool is the threads of a backend. The first of them is the caller's.
type pool struct {
	workers []*worker
	work    []chan func(*worker) error // to workers[1:]
	done    chan error
	running sync.WaitGroup
}

func newPool(b *Backend, threads, scratch int, e solver.Magnitude) (*pool, error) {
	p := &pool{done: make(chan error, threads)}
	for i := range threads {
		m, err := newMemory(scratch)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		w := &worker{b: b, scratch: m, sums: make([]kernel.Collector, len(b.plans)-1)}
		for k := range w.sums {
			w.sums[k] = kernel.NewCollector(e, b.mesh.DType)
		}
		p.workers = append(p.workers, w)
		if i > 0 {
			work := make(chan func(*worker) error)
			p.work = append(p.work, work)
			p.running.Go(func() {
				for f := range work {
					p.done <- f(w)
				}
			})
		}
	}
	return p, nil
}

// each calls f for 0 <= i < n, i on worker i modulo their number, and waits for all. It returns the errors.
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
	helpers := min(len(p.work), max(n-1, 0))
	for k := range helpers {
		p.work[k] <- share(k + 1)
	}
	errs := []error{share(0)(p.workers[0])}
	for range helpers {
		errs = append(errs, <-p.done)
	}
	return errors.Join(errs...)
}

func (p *pool) close() error {
	for _, work := range p.work {
		close(work)
	}
	p.running.Wait()
	var errs []error
	for _, w := range p.workers {
		errs = append(errs, w.scratch.free())
	}
	return errors.Join(errs...)
}
