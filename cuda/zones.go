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

// zones are what the exchanges of a rank, for its mesh and for those of full multigrid, have in common: its zone, those
// of other ranks, and counts.
type zones struct {
	dev        *device
	stream     *driver.Stream
	zone       zone
	rank       int
	neighbours [2]*ZonePeer // by side; nil where rows go over a link
	all        []*ZonePeer  // by rank, nil for the own one; empty if gathers go over links

	mover zoneMover

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

// pace keeps the host from running too far ahead of the GPU. It is called after so many calls of an exchange.
func (z *zones) pace(ctx context.Context, calls int) error {
	if z.dev.times != nil {
		calls *= 3 // with an event before and after each
	}
	if z.queued += calls; z.queued < inFlight {
		return nil
	}
	z.queued = 0
	z.marks[0], z.marks[1] = z.marks[1], z.marks[0]
	if err := z.marks[0].Record(z.stream); err != nil {
		return err
	}
	return z.dev.await(ctx, z.marks[1]) // at once before its first Record
}

// Settle waits until all that is queued is done. Until then this rank may write into the memory of others.
func (z *zones) Settle(ctx context.Context) error {
	if err := z.marks[0].Record(z.stream); err != nil {
		return err
	}
	return z.dev.await(ctx, z.marks[0])
}

// Traffic returns the number of exchanges of rows, and the bytes that went to each neighbour whose memory this rank
// writes into; as many came from it. Gathers do not count. It may be called from any goroutine.
func (z *zones) Traffic() (exchanges, bytes uint64) { return z.overlaps.Load(), z.written.Load() }

const (
	drainTime = 5 * time.Second
	drainStep = 10 * time.Millisecond
)

// Close unmaps the zones of other ranks. After a success, Settle and then a barrier must come before it. After a
// failure, work in the stream may wait for a rank that is gone, so the words are set beyond all exchanges until the
// stream is empty: neighbours that are not gone may set them back.
func (z *zones) Close() error {
	if err := z.dev.context.Use(); err != nil {
		return err
	}
	for start := time.Now(); ; time.Sleep(drainStep) {
		done, err := z.stream.Done()
		if err != nil {
			return errors.Join(fmt.Errorf("cuda levels: end the exchange: %w", err), z.unmap())
		}
		if done {
			return z.unmap()
		}
		if err := z.release(); err != nil {
			return errors.Join(fmt.Errorf("cuda levels: end the exchange: %w", err), z.unmap())
		}
		if time.Since(start) > drainTime {
			return fmt.Errorf("cuda levels: the GPU did not end the exchange within %v", drainTime)
		}
	}
}

// release unblocks the stream where it waits for other ranks.
func (z *zones) release() error {
	s, err := z.dev.context.NewStream(0)
	if err != nil {
		return err
	}
	words := []driver.DevicePtr{z.zone.came(solver.Top), z.zone.came(solver.Bottom)}
	for r := range z.zone.ranks {
		words = append(words, z.zone.gathered(r))
	}
	for _, w := range words {
		if err := s.WriteValue(w, lastExchange); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return errors.Join(s.Synchronize(), s.Close())
}

// unmap unmaps the zones of other ranks, each once.
func (z *zones) unmap() error {
	var errs []error
	closed := map[*ZonePeer]bool{nil: true}
	for _, p := range append(z.neighbours[:], z.all...) {
		if !closed[p] {
			closed[p] = true
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
