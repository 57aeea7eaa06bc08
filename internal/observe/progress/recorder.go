package progress

import (
	"context"
	"time"
)

const (
	recordNorms    = 2048                  // norms that are handed over at once
	recordInterval = 50 * time.Millisecond // after which fewer are
	recordAhead    = 64                    // hand-overs that may wait
)

// Recorder hands the norms of a run to consume in a goroutine of its own, so that the sweeps do not wait for the digits
// of the history or for the forecast. Where a pass of a small mesh takes 30 us, writing its norms takes 3 us. Add and
// Close are called from one goroutine.
type Recorder struct {
	consume func(first int, norms []float64) error
	batches chan batch
	done    chan struct{} // closed when the goroutine has ended
	err     error         // of consume; valid once done is closed
	pending batch
	handed  time.Time // the first norms are handed over at once: they show that the run is under way
}

// batch is the norms of sweeps first, first+1, ...
type batch struct {
	first int
	norms []float64
}

// NewRecorder returns a recorder for consume, which is called in order and by one goroutine.
func NewRecorder(consume func(first int, norms []float64) error) *Recorder {
	r := &Recorder{consume: consume, batches: make(chan batch, recordAhead), done: make(chan struct{})}
	go r.run(r.batches)
	return r
}

// run calls consume until batches is closed or consume returns an error.
func (r *Recorder) run(batches <-chan batch) {
	defer close(r.done)
	for b := range batches {
		if r.err = r.consume(b.first, b.norms); r.err != nil {
			return
		}
	}
}

// Add takes the norms of the next sweeps, the first of which is sweep first. It returns the error that consume returned
// for earlier norms.
func (r *Recorder) Add(ctx context.Context, first int, norms []float64) error {
	if len(r.pending.norms) == 0 {
		r.pending = batch{first, make([]float64, 0, recordNorms+len(norms))}
	}
	r.pending.norms = append(r.pending.norms, norms...)
	now := time.Now()
	if len(r.pending.norms) < recordNorms && now.Sub(r.handed) < recordInterval {
		return nil
	}
	r.handed = now
	return r.hand(ctx)
}

// hand hands over the pending norms. It waits while recordAhead hand-overs are waiting.
func (r *Recorder) hand(ctx context.Context) error {
	if len(r.pending.norms) == 0 {
		return nil
	}
	b := r.pending
	r.pending = batch{}
	select {
	case r.batches <- b:
		return nil
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close hands over what is left, waits until all of it is consumed, and returns the error of consume. A second time it
// only returns the error.
func (r *Recorder) Close(ctx context.Context) error {
	if r.batches == nil {
		return r.err
	}
	err := r.hand(ctx)
	close(r.batches)
	r.batches = nil
	<-r.done
	if r.err != nil {
		return r.err
	}
	return err
}
