package shm

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WordSize is the bytes of a Word: a cache line, so that two words never share one.
const WordSize = 64

// Word is a number in a segment that processes wait on. Its operations are atomic and sequentially
// consistent, and order plain accesses to the segment as those of sync/atomic do. It starts as 0.
type Word struct {
	value atomic.Uint32
	// processes asleep, or about to be; one that was killed asleep stays counted, which costs a system call a Wake
	waiters atomic.Uint32
	_       [WordSize - 8]byte
}

// slice is the longest sleep: after it, a waiter looks at its context and its deadline again.
const slice = 40 * time.Millisecond

// Load returns the number.
func (w *Word) Load() uint32 { return w.value.Load() }

// Store sets the number and wakes those who wait for it.
func (w *Word) Store(v uint32) {
	w.value.Store(v)
	w.Wake()
}

// Wake makes all who wait look again. It makes no system call when nobody sleeps.
func (w *Word) Wake() {
	// A waiter counts itself, then looks at the number, then sleeps; who changes the number does so before
	// looking at the count. So one of the two sees the other.
	if w.waiters.Load() != 0 {
		futexWake(&w.value)
	}
}

// Wait returns nil as soon as until(number) is true. It looks again and again for the time spin (see
// SpinTime), then sleeps. It fails with the cause of ctx's end, within 50 ms of it, or, when deadline is not
// zero, with os.ErrDeadlineExceeded after deadline.
func (w *Word) Wait(ctx context.Context, spin time.Duration, deadline time.Time, until func(uint32) bool) error {
	if until(w.value.Load()) {
		return nil
	}
	if spin > 0 {
		// No runtime.Gosched here: on a goroutine locked to its thread it costs more than a sleep.
		for start := time.Now(); time.Since(start) < spin; {
			for range 32 {
				if until(w.value.Load()) {
					return nil
				}
			}
		}
	}
	w.waiters.Add(1)
	defer w.waiters.Add(math.MaxUint32)
	for {
		v := w.value.Load()
		if until(v) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		nap := slice
		if !deadline.IsZero() {
			nap = min(nap, time.Until(deadline))
			if nap <= 0 {
				return os.ErrDeadlineExceeded
			}
		}
		if err := futexWait(&w.value, v, nap); err != nil {
			return err
		}
	}
}

// SpinTime returns how long a Wait should spin where so many busy threads take turns on a core: about what a sleep and
// a wake cost where every thread has one to itself, nothing where spinning would take it from the thread waited for.
func SpinTime(threadsPerCore int) time.Duration {
	if threadsPerCore > 1 {
		return 0
	}
	return 50 * time.Microsecond
}

// The operations of futex(2), shared between processes, hence without FUTEX_PRIVATE_FLAG.
const (
	opWait = 0
	opWake = 1
)

// futexWait sleeps while *addr is v, at most for d; it may return early.
func futexWait(addr *atomic.Uint32, v uint32, d time.Duration) error {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), opWait, uintptr(v),
		uintptr(unsafe.Pointer(&t)), 0, 0)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ETIMEDOUT:
		return nil
	}
	return fmt.Errorf("shm: wait: %w", errno)
}

func futexWake(addr *atomic.Uint32) {
	// It fails for an address that is not mapped alone, and that faulted when the count was read.
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), opWake, math.MaxInt32)
}
