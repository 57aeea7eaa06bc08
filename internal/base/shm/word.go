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

// WordSize is the size of a Word in bytes: a cache line, so that two words never share one.
const WordSize = 64

// Word is a number in a segment that processes can wait on. Its operations are atomic and sequentially consistent, and
// order plain accesses to the segment as those of sync/atomic do. It starts as 0.
type Word struct {
	value atomic.Uint32
	// number of processes that sleep or are about to; one that is killed asleep stays counted, at the cost of a system
	// call in each Wake
	waiters atomic.Uint32
	_       [WordSize - 8]byte
}

// maxSleep is the longest sleep. After it a waiter checks its context and its deadline.
const maxSleep = 40 * time.Millisecond

// Load returns the number.
func (w *Word) Load() uint32 { return w.value.Load() }

// Store sets the number and wakes all that wait for it.
func (w *Word) Store(v uint32) {
	w.value.Store(v)
	w.Wake()
}

// Wake makes all waiters check the number again. It makes no system call if none sleeps.
func (w *Word) Wake() {
	// A waiter counts itself before it loads the number and sleeps. A writer changes the number before it loads the
	// count. So either the waiter sees the new number, or the writer sees the waiter.
	if w.waiters.Load() != 0 {
		futexWake(&w.value)
	}
}

// Wait returns nil as soon as until(number) is true. It polls for the time spin (see SpinTime), then sleeps. It fails
// with the cause of ctx within 50 ms of ctx's end, and with os.ErrDeadlineExceeded after deadline, unless that is zero.
func (w *Word) Wait(ctx context.Context, spin time.Duration, deadline time.Time, until func(uint32) bool) error {
	if until(w.value.Load()) {
		return nil
	}
	if spin > 0 {
		// No runtime.Gosched here: in a goroutine locked to its thread it costs more than a sleep.
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
		nap := maxSleep
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

// SpinTime returns how long a Wait should spin if threadsPerCore busy threads share a core. With one thread a core it
// is about the cost of a sleep and a wake. With more it is 0, since spinning would take the core from the thread waited
// for.
func SpinTime(threadsPerCore int) time.Duration {
	if threadsPerCore > 1 {
		return 0
	}
	return 50 * time.Microsecond
}

// The operations of futex(2). They are without FUTEX_PRIVATE_FLAG because processes share the words.
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
	// It fails only for an address that is not mapped, and loading the count would have faulted there.
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), opWake, math.MaxInt32)
}
