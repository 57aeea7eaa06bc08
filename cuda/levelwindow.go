package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// levelWindow is the memory of a rank of multigrid into which the other ranks of its node write. It is an allocation of
// its own, so that they map nothing else:
//
//	32-bit words, flagStride bytes apart:
//	    came, by side       the number of the newest exchange whose rows have come from the neighbour there
//	    gathered, by rank   the number of the newest gather for which the rank has written its block
//	    count, by move      the progress of a kernel that writes; of this rank alone
//	rows, by side and parity of the exchange: those beside the stripe, on any level
//	right-hand sides, by parity of the gather: of a level that is gathered, with its pitch
//
// No word says what is free. Every exchange has all ranks write and then wait. Whoever writes for exchange n+2 has
// waited for exchange n+1, which the reader began after it had copied the rows of exchange n out.
type levelWindow struct {
	base  driver.DevicePtr // 0 without memory
	ranks int
	rows  int // bytes of the rows of a side
	right int // bytes of a right-hand side
}

// newLevelWindow returns the window of a rank with layout l of the finest mesh, without memory.
func newLevelWindow(l multigrid.Layout, ranks int) levelWindow {
	gathered := l.Plan.Levels[l.Agglomerated].Mesh
	gathered.DType = solver.Float64 // as stencils of a weighted operator have it
	return levelWindow{ranks: ranks, rows: multigrid.HaloDepth * pitchOf(l.Plan.Levels[0].Mesh),
		right: gathered.NY * pitchOf(gathered)}
}

const (
	windowPage  = 4096
	windowAlign = 2 << 20 // what the driver allocates at once
)

// words returns the bytes of the words.
func (w levelWindow) words() int {
	return (flagStride*(2+w.ranks+mostMoves) + windowPage - 1) / windowPage * windowPage
}

func (w levelWindow) bytes() int64 {
	n := int64(w.words()) + 4*int64(w.rows) + 2*int64(w.right)
	return (n + windowAlign - 1) / windowAlign * windowAlign
}

func (w levelWindow) word(i int) driver.DevicePtr            { return flags(w.base).word(i) }
func (w levelWindow) came(side solver.Side) driver.DevicePtr { return w.word(int(side)) }
func (w levelWindow) gathered(rank int) driver.DevicePtr     { return w.word(2 + rank) }
func (w levelWindow) at(offset int) driver.DevicePtr         { return w.base + driver.DevicePtr(offset) }
func (w levelWindow) rightOf(gather uint32) driver.DevicePtr {
	return w.at(w.words() + 4*w.rows + int(gather%2)*w.right)
}
func (w levelWindow) rowsOf(side solver.Side, n uint32) driver.DevicePtr {
	return w.at(w.words() + (2*int(side)+int(n%2))*w.rows)
}

// count returns the word by which the blocks of a kernel count the i-th move of those that write.
func (w levelWindow) count(i int) driver.DevicePtr { return w.word(2 + w.ranks + i%mostMoves) }

// WindowBytes returns the bytes of GPU memory that OpenWindow allocates.
func WindowBytes(l multigrid.Layout, ranks int) int64 { return newLevelWindow(l, ranks).bytes() }

func (w levelWindow) shape() []int { return []int{w.ranks, w.rows, w.right} }

// OpenWindow allocates the memory into which other ranks write. It must be called before OfferWindow.
func (v *Levels) OpenWindow(ranks int) error {
	w := newLevelWindow(v.layout, ranks)
	base, err := v.dev.alloc(w.bytes())
	if err != nil {
		return fmt.Errorf("memory for the rows of other ranks: %w", err)
	}
	w.base = base
	if err := v.stream.Fill(base, 0, int(w.bytes())); err != nil {
		return err
	}
	v.window = w
	return v.stream.Synchronize()
}

// OfferWindow returns what other ranks need for MapWindow.
func (v *Levels) OfferWindow(rank int) ([]byte, error) {
	return v.dev.offer(offer{Rank: rank, Shape: v.window.shape()}, v.window.base)
}

// MapWindow maps what the levels of another rank offer.
func (v *Levels) MapWindow(offer []byte) (*Window, error) {
	return v.dev.mapWindow(offer, v.window.shape(), 1)
}

// of returns the window of another rank, which has the shape of w; without memory if that is not mapped.
func (w levelWindow) of(mapped *Window) levelWindow {
	if w.base = 0; mapped != nil {
		w.base = mapped.memory[0]
	}
	return w
}

// levelWindows are what the exchanges of a rank have in common: its
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

// Drain waits until all that is queued is done. Until then this rank may write into the memory of others.
func (w *levelWindows) Drain(ctx context.Context) error {
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

// Close unmaps the windows of other ranks. After a success, Drain and then a barrier must come before it. After a
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
