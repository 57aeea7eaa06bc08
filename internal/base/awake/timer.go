package awake

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Timer is a time.Timer that follows a clock.
type Timer struct {
	C <-chan time.Time // nil unless made by NewTimer

	fire  func()
	drain func()

	mu    sync.Mutex
	limit Limit
	timer *time.Timer
	armed bool
}

// NewTimer returns a timer that sends on its channel after d.
func (c *Clock) NewTimer(d time.Duration) *Timer {
	ch := make(chan time.Time, 1)
	t := c.AfterFunc(d, func() {
		select {
		case ch <- time.Now():
		default:
		}
	})
	t.C = ch
	t.drain = func() {
		select {
		case <-ch:
		default:
		}
	}
	return t
}

// AfterFunc calls f, which must not block, after d.
func (c *Clock) AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{fire: f, limit: c.Limit(d), armed: true}
	t.mu.Lock() // look waits until t.timer is set
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(d, t.look)
	return t
}

// look fires if the time is over by the clock. Otherwise it sets the timer again.
func (t *Timer) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.armed {
		return
	}
	if left := t.limit.Left(); left > 0 {
		t.timer.Reset(max(left, interval))
		return
	}
	t.armed = false
	t.fire()
}

// Stop keeps the timer from firing later.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	t.timer.Stop()
}

// Reset makes the timer fire after d from now, and discards a value that it has sent before.
func (t *Timer) Reset(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drain != nil {
		t.drain()
	}
	t.limit, t.armed = t.limit.clock.Limit(d), true
	t.timer.Reset(d)
}

// WithTimeout is context.WithTimeout with the clock of ctx.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(ctx, d, context.DeadlineExceeded)
}

// WithTimeoutCause is context.WithTimeoutCause with the clock of ctx.
func WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	c := Of(ctx)
	if c == nil {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	inner, cancel := context.WithCancelCause(ctx)
	l := &limited{Context: inner}
	l.timer = c.AfterFunc(d, func() {
		l.late.Store(inner.Err() == nil)
		cancel(cause)
	})
	return l, func() {
		l.timer.Stop()
		cancel(nil)
	}
}

// limited is a context that ends when its timer fires.
type limited struct {
	context.Context
	timer *Timer
	late  atomic.Bool
}

// Deadline returns the earliest time at which the context can end.
func (l *limited) Deadline() (time.Time, bool) {
	l.timer.mu.Lock()
	at := l.timer.limit.Deadline()
	l.timer.mu.Unlock()
	if before, ok := l.Context.Deadline(); ok && before.Before(at) {
		return before, true
	}
	return at, true
}

// Err returns context.DeadlineExceeded if the timer ended the context.
func (l *limited) Err() error {
	err := l.Context.Err()
	if errors.Is(err, context.Canceled) && l.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}
