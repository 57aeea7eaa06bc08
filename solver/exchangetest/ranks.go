package exchangetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"jacobi/solver"
	"jacobi/solver/jacobi"
)

// nobody is held back.
const nobody = -1

// runCase does a whole run. The rank slow, unless it is nobody, posts an exchange only after its neighbours have, and
// waits for it only after they have posted the next one.
func runCase(t *testing.T, factory Factory, c Case, slow int) {
	end := c.Depth * (c.Exchanges + 1)
	truth, layouts := c.prepare(t, end)
	posted := newProgress(c)
	if err := drive(t, factory, layouts, truth, func(ctx context.Context, rank int, r Rank) error {
		x := &observed{Exchange: r.Exchange, rank: r, layout: layouts[rank], truth: truth}
		if rank == slow {
			x.beforePost = func(ctx context.Context, n solver.ExchangeNumber) error {
				return posted.wait(ctx, rank, n)
			}
			x.beforeWait = func(ctx context.Context, n solver.ExchangeNumber) error {
				return posted.wait(ctx, rank, n+1)
			}
		}
		x.after = func(n solver.ExchangeNumber) { posted.add(rank, n) }
		e, err := c.engine(r, x)
		if err != nil {
			return err
		}
		s := layouts[rank].Stripe
		got := make([]byte, s.Rows()*c.Mesh.RowBytes())
		for e.Done() < end {
			p, err := e.Advance(ctx, end, end)
			if err != nil {
				return err
			}
			if (p.Index+uint64(rank))%3 != 0 && e.Done() < end {
				continue // a copy waits for the device, which hides what an exchange may leave undone
			}
			if err := r.Backend.CopyRows(ctx, s, got); err != nil {
				return err
			}
			if err := truth.equal(got, s, e.Done()); err != nil {
				return err
			}
		}
		if x.received != solver.ExchangeNumber(c.Exchanges) {
			return fmt.Errorf("%d exchanges, want %d", x.received, c.Exchanges)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// prepare returns the field after up to the given number of sweeps, and the layouts of the ranks.
func (c Case) prepare(t *testing.T, sweeps int) (*truth, []solver.Layout) {
	t.Helper()
	truth, err := newTruth(c.Mesh, sweeps)
	if err != nil {
		t.Fatal(err)
	}
	layouts, err := c.layouts(magnitude)
	if err != nil {
		t.Fatal(err)
	}
	return truth, layouts
}

// engine returns an engine of r that exchanges by x.
func (c Case) engine(r Rank, x *observed) (*jacobi.Engine, error) {
	o := jacobi.Options{Depth: c.Depth, MaxSweeps: min(cmp.Or(c.Sweeps, c.Depth), r.Backend.Limits().MaxSweeps)}
	e, err := jacobi.New(r.Backend, x, &solver.Watch{}, o)
	if err == nil {
		x.sweeps = e.Done
	}
	return e, err
}

// limit bounds a run, which takes a small part of it.
const limit = 30 * time.Second

// drive opens all ranks and loads the field, calls work for each in a goroutine of its own, and closes them. The first
// error ends the others. No rank sweeps before all have loaded: a Load may wait for all work of a device, and ranks of
// one process may share it.
func drive(t *testing.T, factory Factory, layouts []solver.Layout, field solver.RowSource,
	work func(ctx context.Context, rank int, r Rank) error) error {
	limited, stop := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("not done within %v", limit))
	defer stop()
	ctx, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	open := factory(t, layouts)
	errs := make([]error, len(layouts))
	var opened, worked, closed sync.WaitGroup
	opened.Add(len(layouts))
	worked.Add(len(layouts))
	closed.Add(len(layouts))
	var all sync.WaitGroup
	for rank := range layouts {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			fail := func(err error) {
				if err != nil {
					errs[rank] = errors.Join(errs[rank], fmt.Errorf("rank %d: %w", rank, err))
					cancel(errs[rank])
				}
			}
			r, err := open(ctx, rank)
			if err == nil {
				err = r.Backend.Load(ctx, field)
			}
			fail(err)
			opened.Done()
			opened.Wait()
			if ctx.Err() == nil {
				fail(work(ctx, rank, r))
			}
			worked.Done()
			worked.Wait()
			if x, ok := r.Exchange.(io.Closer); ok {
				fail(x.Close())
			}
			closed.Done()
			closed.Wait()
			if r.Backend != nil {
				fail(r.Backend.Close())
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// observed checks an exchange from outside.
type observed struct {
	solver.Exchange
	rank     Rank
	layout   solver.Layout
	truth    *truth     // nil: halos are not checked
	sweeps   func() int // done so far
	received solver.ExchangeNumber
	after    func(n solver.ExchangeNumber) // Post of exchange n has returned; may be nil

	beforePost, beforeWait func(ctx context.Context, n solver.ExchangeNumber) error // may be nil
}

// Post posts and checks an error.
func (x *observed) Post(ctx context.Context, r solver.HaloRows) error {
	n := x.received + 1
	if x.beforePost != nil {
		if err := x.beforePost(ctx, n); err != nil {
			return err
		}
	}
	if err := x.Exchange.Post(ctx, r); err != nil {
		return named(err, n)
	}
	if x.after != nil {
		x.after(n)
	}
	return nil
}

// Wait waits and checks an error and, after every other exchange, the halos: reading them waits for the device.
func (x *observed) Wait(ctx context.Context, r solver.HaloRows) error {
	n := x.received + 1
	if x.beforeWait != nil {
		if err := x.beforeWait(ctx, n); err != nil {
			return err
		}
	}
	if err := x.Exchange.Wait(ctx, r); err != nil {
		return named(err, n)
	}
	x.received = n
	if x.truth == nil || n%2 == 0 {
		return nil
	}
	return checkHalos(ctx, x.rank, x.layout, x.truth, x.sweeps())
}

// checkHalos compares the halos of now with the neighbours' rows of the field after the given number of sweeps.
func checkHalos(ctx context.Context, r Rank, l solver.Layout, f *truth, sweeps int) error {
	got := make([]byte, l.Depth*l.Mesh.RowBytes())
	for _, side := range []solver.Side{solver.Top, solver.Bottom} {
		if !l.Neighbour[side] {
			continue
		}
		if err := r.Halo(ctx, side, got); err != nil {
			return err
		}
		if err := f.equal(got, l.Halo(side), sweeps); err != nil {
			return fmt.Errorf("halo at the %v: %w", side, err)
		}
	}
	return nil
}

// runCancel lets all ranks but the last sweep. They wait for its rows until their context ends.
func runCancel(t *testing.T, factory Factory, c Case) {
	truth, layouts := c.prepare(t, 0)
	cause := errors.New("the last rank is gone")
	if err := drive(t, factory, layouts, truth, func(ctx context.Context, rank int, r Rank) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if rank == c.Ranks-1 {
			return nil
		}
		x := &observed{Exchange: r.Exchange, rank: r, layout: layouts[rank]}
		x.beforeWait = func(_ context.Context, n solver.ExchangeNumber) error {
			if n == 1 {
				go cancel(cause) // while this rank waits, or just before
			}
			return nil
		}
		e, err := c.engine(r, x)
		if err != nil {
			return err
		}
		for range 1000 {
			if _, err := e.Advance(ctx, 1<<40, 1<<40); err != nil {
				if !errors.Is(err, cause) {
					return fmt.Errorf("error %w, want %w", err, cause)
				}
				return nil
			}
		}
		return errors.New("1000 passes without rows of the last rank")
	}); err != nil {
		t.Error(err)
	}
}

// progress tells a rank which exchanges its neighbours have posted.
type progress struct {
	c      Case
	posted [][]chan struct{} // by rank and exchange; closed after Post
}

func newProgress(c Case) *progress {
	p := &progress{c: c}
	for range c.Ranks {
		var posted []chan struct{}
		for range c.Exchanges + 1 {
			posted = append(posted, make(chan struct{}))
		}
		p.posted = append(p.posted, posted)
	}
	return p
}

func (p *progress) add(rank int, n solver.ExchangeNumber) { close(p.posted[rank][n]) }

// wait waits until the neighbours of a rank have posted exchange n. There is nothing to wait for after the last one.
func (p *progress) wait(ctx context.Context, rank int, n solver.ExchangeNumber) error {
	if int(n) > p.c.Exchanges {
		return nil
	}
	for _, side := range []solver.Side{solver.Top, solver.Bottom} {
		neighbour := Neighbour(p.c.Mesh, p.c.Ranks, rank, side)
		if neighbour < 0 {
			continue
		}
		select {
		case <-p.posted[neighbour][n]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// named adds to err, the error of exchange n, that its text does not name the exchange, if so.
func named(err error, n solver.ExchangeNumber) error {
	if !regexp.MustCompile(fmt.Sprintf(`\bexchange %d\b`, n)).MatchString(err.Error()) {
		return fmt.Errorf("%w: this error does not name exchange %d", err, n)
	}
	return err
}
