package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// levelWindows are what the exchanges of a rank, for its mesh and for those of full multigrid, have in common: its
// window, those of other ranks, and counts.
type levelWindows struct {
	dev        *device
	stream     *driver.Stream
	own        levelWindow
	rank       int
	neighbours [2]levelWindow // by side; without memory where rows go over a link
	all        []levelWindow  // by rank; empty if gathers go over links
	open       windows

	mover rowMover

	exchanges uint32 // of rows, so far
	gathers   uint32
	queued    int              // calls since the last mark
	marks     [2]*driver.Event // the last one, and the one before it
	written   atomic.Uint64    // bytes for each neighbour that is written to directly
	overlaps  atomic.Uint64    // exchanges, for any goroutine to read
}

// inFlight is the number of calls of exchanges between two marks. A driver takes about a thousand calls ahead of the
// GPU. The next one would wait for the GPU, which may wait for a neighbour that is gone.
const inFlight = 128

// pace keeps the host from running too far ahead of the GPU. It is called after the given number of calls of an
// exchange.
func (w *levelWindows) pace(ctx context.Context, calls int) error {
	if w.dev.times != nil {
		calls *= 3 // with an event before and after each
	}
	if w.queued += calls; w.queued < inFlight {
		return nil
	}
	w.queued = 0
	w.marks[0], w.marks[1] = w.marks[1], w.marks[0]
	if err := w.marks[0].Record(w.stream); err != nil {
		return err
	}
	return w.dev.await(ctx, w.marks[1]) // at once before its first Record
}

// Settle waits until all that is queued is done. Until then this rank may write into the memory of others.
func (w *levelWindows) Settle(ctx context.Context) error {
	if err := w.marks[0].Record(w.stream); err != nil {
		return err
	}
	return w.dev.await(ctx, w.marks[0])
}

// Traffic returns the number of exchanges of rows, and the bytes that went to each neighbour whose memory this rank
// writes into. The same number of bytes came from it. Gathers do not count. It may be called from any goroutine.
func (w *levelWindows) Traffic() (exchanges, bytes uint64) {
	return w.overlaps.Load(), w.written.Load()
}

const (
	drainTime = 5 * time.Second
	drainStep = 10 * time.Millisecond
)

// Close unmaps the windows of other ranks. After a success, Settle and then a barrier must come before it. After a
// failure, work in the stream may wait for a rank that is gone, so the words are set beyond all exchanges until the
// stream is empty: neighbours that are not gone may set them back.
func (w *levelWindows) Close() error {
	if err := w.dev.context.Use(); err != nil {
		return err
	}
	for start := time.Now(); ; time.Sleep(drainStep) {
		done, err := w.stream.Done()
		if err != nil {
			return errors.Join(fmt.Errorf("cuda levels: end the exchange: %w", err), w.open.close())
		}
		if done {
			return w.open.close()
		}
		if err := w.release(); err != nil {
			return errors.Join(fmt.Errorf("cuda levels: end the exchange: %w", err), w.open.close())
		}
		if time.Since(start) > drainTime {
			return fmt.Errorf("cuda levels: the GPU did not end the exchange within %v", drainTime)
		}
	}
}

// release unblocks the stream where it waits for other ranks.
func (w *levelWindows) release() error {
	words := []driver.DevicePtr{w.own.came(solver.Top), w.own.came(solver.Bottom)}
	for r := range w.own.ranks {
		words = append(words, w.own.gathered(r))
	}
	return w.dev.releaseWords(words...)
}
