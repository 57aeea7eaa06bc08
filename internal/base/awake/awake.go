// Package awake measures waits without the time in which the run could make no progress: while this process or the
// launcher that started it was stopped (Ctrl-Z, kill -STOP, a scheduler that suspends its job), or their machine slept.
// A context carries the clock, so that all deadlines of a run follow it.
package awake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	interval = 100 * time.Millisecond
	// maxGap is the most that counts of the time between two ticks. On a busy machine ticks may be further apart: then
	// time counts for less, but never for nothing, so that every wait ends.
	maxGap = time.Second
)

// Clock counts the time in which its process runs and is not held. A nil Clock counts all time.
type Clock struct {
	mu      sync.Mutex
	counted time.Duration // up to tick
	tick    time.Time
	held    bool   // since tick
	over    bool   // the ticks have ended: all time counts
	outer   *Clock // what holds it up holds this one up, too; may be nil
}

type key struct{}

// Start returns ctx with a clock, which runs until ctx ends. held reports whether another process holds up this one at
// the moment; it may be nil. What holds up a clock that ctx has already holds up this one, too.
func Start(ctx context.Context, held func() bool) context.Context {
	c := &Clock{tick: time.Now(), outer: Of(ctx)}
	go c.run(ctx, held)
	return context.WithValue(ctx, key{}, c)
}

// Of returns the clock of ctx, nil if it has none.
func Of(ctx context.Context) *Clock {
	c, _ := ctx.Value(key{}).(*Clock)
	return c
}

func (c *Clock) run(ctx context.Context, held func() bool) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.advance(held != nil && held() || c.outer.isHeld(), false)
		case <-ctx.Done():
			c.advance(false, true)
			return
		}
	}
}

func (c *Clock) advance(held, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.counted += c.since(now)
	c.tick, c.held, c.over = now, held, over
}

func (c *Clock) isHeld() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// since returns how much of the time since the last tick counts.
func (c *Clock) since(now time.Time) time.Duration {
	gap := now.Sub(c.tick)
	if c.held {
		return 0
	} else if c.over {
		return gap
	}
	return min(gap, maxGap)
}

var epoch = time.Now()

// Now returns the time counted so far. Only differences of its values have a meaning.
func (c *Clock) Now() time.Duration { return c.at(time.Now()) }

func (c *Clock) at(now time.Time) time.Duration {
	if c == nil {
		return now.Sub(epoch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted + c.since(now)
}

// Limit is the limit of a wait, in the time of a clock.
type Limit struct {
	clock    *Clock
	end      time.Duration
	earliest time.Time
}

// Limit returns the limit of a wait of length d that begins now.
func (c *Clock) Limit(d time.Duration) Limit {
	now := time.Now()
	return Limit{c, c.at(now) + d, now.Add(d)}
}

// Earliest returns the time at which the wait is over if all time counts.
func (l Limit) Earliest() time.Time { return l.earliest }

// Left returns the time that is left. It is not positive once the wait is over.
func (l Limit) Left() time.Duration { return l.end - l.clock.Now() }

// Deadline returns the earliest time at which the wait can be over.
func (l Limit) Deadline() time.Time { return time.Now().Add(l.Left()) }

// Watch returns a function that reports whether a signal or a debugger has stopped the process pid. One goroutine at a
// time may call it.
func Watch(pid int) (stopped func() bool) {
	// The file stays open, since every rank reads it at every tick. It is that of the process's first thread: for the
	// whole process the kernel would add up the times of all threads, and a launcher has one for each rank.
	stat, err := os.Open(fmt.Sprintf("/proc/%d/task/%d/stat", pid, pid))
	if err != nil {
		return func() bool { return false }
	}
	buf := make([]byte, 64) // the state follows the number and the name, which has up to 15 bytes, escaped
	return func() bool {
		if _, err := stat.ReadAt(buf, 0); err != nil {
			return false
		}
		after := buf[max(0, bytes.LastIndexByte(buf, ')')):] // after the name, which may hold any byte
		_, fields, ok := bytes.Cut(after, []byte(" "))
		return ok && len(fields) > 0 && (fields[0] == 'T' || fields[0] == 't')
	}
}

// Timer is a time.Timer that follows a clock.
type Timer struct {
	C <-chan time.Time // nil unless made by NewTimer

	fire func()

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
	select {
	case <-t.C:
	default:
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
