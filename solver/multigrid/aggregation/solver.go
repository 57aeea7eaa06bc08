package aggregation

import (
	"context"
	"sync"
	"sync/atomic"
)

// Solver solves the equations of level 1 by a cycle. It has vectors for one at a time.
type Solver struct {
	levels  *Levels
	threads int
	work    []vectors // by level, from level 1 on
	// The present task, which helpers share.
	task
	chunks  int64
	next    atomic.Int64
	running sync.WaitGroup
	helper  func()
}

// vectors are those of a level, by unknown.
type vectors struct {
	*Level
	b, x []float64
	y    []float64 // what the first sweep leaves
	// For the steps of conjugate gradients: A x, the residual after the first step, and the second direction.
	v, r, second []float64
	sums         [3][]float64 // by chunk
	faces, sets  []uint16     // the unknowns of this level and of the next one, by length of their faces and members
}

// NewSolver returns a solver that works on the given number of threads. Its bits do not depend on that.
func (l *Levels) NewSolver(threads int) *Solver {
	s := &Solver{levels: l, threads: threads, work: make([]vectors, len(l.Levels))}
	for i := range s.work {
		w := &s.work[i]
		w.Level = &l.Levels[i]
		n := w.Unknowns()
		w.faces = byLength(w.Begin)
		if w.First != nil {
			w.sets = byLength(w.First)
		}
		of := []*[]float64{&w.y}
		if i > 0 { // those of level 1 are the caller's
			of = append(of, &w.b, &w.x)
		}
		if l.Accelerates(i) {
			of = append(of, &w.v, &w.r, &w.second)
			for k := range w.sums {
				w.sums[k] = make([]float64, ceilDiv(n, chunk))
			}
		}
		for _, v := range of {
			*v = make([]float64, n)
		}
	}
	s.helper = func() {
		s.share()
		s.running.Done()
	}
	return s
}

// Accelerates reports whether Levels[i] has steps of conjugate gradients: levels 1, 3, 5, .. of those that have a
// coarser one.
func (l *Levels) Accelerates(i int) bool { return i%2 == 0 && i+1 < len(l.Levels) }

// Bytes returns the bytes of memory that the solver takes beside that of the levels.
func (s *Solver) Bytes() (bytes int64) {
	for i := range s.work {
		w := &s.work[i]
		for _, v := range [][]float64{w.b, w.x, w.y, w.v, w.r, w.second, w.sums[0], w.sums[1], w.sums[2]} {
			bytes += 8 * int64(cap(v))
		}
		bytes += 2 * int64(len(w.faces)+len(w.sets))
	}
	s0 := &s.work[0]
	return bytes - 8*int64(cap(s0.b)+cap(s0.x))
}

// weight is that of the only sweep before the correction from the next level, and of the one after it (see
// multigrid.Weights).
const weight = 2.0 / 3

// Solve sets x to the solution of a cycle for the right-hand side b, by unknown of level 1. It fails if the context
// ends. On the coarsest level x is the product of its inverse, if there is one, and b. On other ones a cycle does a
// sweep that begins with x = 0,
//
//	x = x + w (1/d r)
//
// adds the residuals of the members of each set in ascending order, solves on the next level, adds its solution to each
// member, and does another sweep. Levels 1, 3, .. do up to two steps of conjugate gradients with such cycles (Y. Notay,
// P. S. Vassilevski, "Recursive Krylov-based multigrid cycles", 2008),
//
//	c = cycle(b)    v = A c    rho = c v    t = (c b) / rho    r = b - t v
//	c' = cycle(r)   v' = A c'  gamma = c' v    beta = c' v'    alpha = c' r    rho' = beta - gamma^2/rho
//	x = (t - gamma alpha / (rho rho')) c + (alpha / rho') c'
//
// and leave out the second one, so that x = t c, if |r| <= |b|/4 or rho' <= 1e-14 beta. If rho is not above 0, x = c.
func (s *Solver) Solve(ctx context.Context, x, b []float64) error {
	w := &s.work[0]
	w.x, w.b = x, b
	s.run(len(b), task{do: begin, vectors: w, a: b, to: w.y})
	return s.solve(ctx, 0)
}

// solve sets x of a level to the solution for b, with y what the first sweep leaves.
func (s *Solver) solve(ctx context.Context, i int) error {
	w := &s.work[i]
	n := w.Unknowns()
	if i+1 == len(s.work) && s.levels.Inverse != nil {
		s.run(n, task{do: multiply, vectors: w, a: s.levels.Inverse, b: w.b, to: w.x})
		return nil
	}
	if err := s.cycle(ctx, i, w.b, w.x); err != nil || !s.levels.Accelerates(i) {
		return err
	}
	s.run(n, task{do: firstStep, vectors: w, a: w.x, b: w.b, to: w.v})
	rho, alpha, bb := total(w.sums[0]), total(w.sums[1]), total(w.sums[2])
	if !(rho > 0) {
		return nil
	}
	t := alpha / rho
	s.run(n, task{do: reduce, vectors: w, a: w.b, b: w.v, to: w.r, p: t})
	if total(w.sums[0]) <= bb/16 {
		s.run(n, task{do: scale, vectors: w, to: w.x, p: t})
		return nil
	}
	if err := s.cycle(ctx, i, w.r, w.second); err != nil {
		return err
	}
	s.run(n, task{do: secondStep, vectors: w, a: w.second, b: w.r, to: w.y})
	beta, gamma, second := total(w.sums[0]), total(w.sums[1]), total(w.sums[2])
	rest := beta - float64(gamma*gamma)/rho
	if !(rest > float64(1e-14*beta)) {
		s.run(n, task{do: scale, vectors: w, to: w.x, p: t})
		return nil
	}
	p := t - float64(gamma*second)/float64(rho*rest)
	s.run(n, task{do: combine, vectors: w, a: w.second, to: w.x, p: p, q: second / rest})
	return nil
}

// cycle does the cycle of a level for b. y is what the first sweep leaves.
func (s *Solver) cycle(ctx context.Context, i int, b, to []float64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := &s.work[i]
	if i+1 < len(s.work) {
		next := &s.work[i+1]
		s.run(w.Unknowns(), task{do: residuals, vectors: w, a: w.y, b: b, to: to})
		s.run(next.Unknowns(), task{do: restrict, vectors: w, a: to, to: next.b, next: next})
		if err := s.solve(ctx, i+1); err != nil {
			return err
		}
		s.run(w.Unknowns(), task{do: correct, vectors: w, a: next.x, to: w.y})
	}
	s.run(w.Unknowns(), task{do: sweep, vectors: w, a: w.y, b: b, to: to})
	return nil
}

// task is an operation on the unknowns of a level, by chunk.
type task struct {
	do func(t *task, lo, hi int)
	n  int // unknowns
	*vectors
	a, b, to []float64
	p, q     float64
	next     *vectors
}

// alone is the most unknowns whose operations one thread does.
const alone = 4 * chunk

// run does a task for n unknowns, on all threads if they are many.
func (s *Solver) run(n int, t task) {
	s.task = t
	s.n = n
	s.chunks = int64(ceilDiv(n, chunk))
	s.next.Store(0)
	if n > alone {
		helpers := min(s.threads, n/alone) - 1
		s.running.Add(helpers)
		for range helpers {
			go s.helper()
		}
	}
	s.share()
	s.running.Wait()
}

// share does chunks of the present task until none is left.
func (s *Solver) share() {
	for k := s.next.Add(1) - 1; k < s.chunks; k = s.next.Add(1) - 1 {
		lo := int(k) * chunk
		s.do(&s.task, lo, min(lo+chunk, s.n))
	}
}

// byLength returns the things of each chunk, numbered from its beginning, by their length: thing i has begin[i] to
// begin[i+1]-1. A processor foresees where loops over them end then.
func byLength(begin []int32) []uint16 {
	order := make([]uint16, len(begin)-1)
	var next []uint16 // by length
	for lo := 0; lo < len(order); lo += chunk {
		n := min(chunk, len(order)-lo)
		clear(next)
		for i := range n {
			length := int(begin[lo+i+1] - begin[lo+i])
			for len(next) < length+2 {
				next = append(next, 0)
			}
			next[length+1]++
		}
		for k := 1; k < len(next); k++ {
			next[k] += next[k-1]
		}
		for i := range n {
			length := begin[lo+i+1] - begin[lo+i]
			order[lo+int(next[length])] = uint16(i)
			next[length]++
		}
	}
	return order
}
