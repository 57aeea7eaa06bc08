package halo

import (
	"sync/atomic"
	"time"

	"jacobi/solver"
)

// inFlight counts, for each of the two exchanges that may be under way, the goroutines that still read its rows.
type inFlight struct {
	left [2]atomic.Int32
	idle chan struct{} // holds a signal when one of them has become 0
}

func newInFlight() inFlight { return inFlight{idle: make(chan struct{}, 1)} }

// begin is called before the rows of exchange are handed to n goroutines.
func (f *inFlight) begin(exchange solver.ExchangeNumber, n int) { f.left[exchange%2].Add(int32(n)) }

// done is called by each of them when it no longer reads the rows. It reports whether that was the last one.
func (f *inFlight) done(exchange solver.ExchangeNumber) bool {
	if f.left[exchange%2].Add(-1) > 0 {
		return false
	}
	select {
	case f.idle <- struct{}{}:
	default:
	}
	return true
}

// wait waits until nobody reads the rows of exchange, or of exchange-2. It returns false after the timeout, and when
// over ends. One goroutine at a time may wait.
func (f *inFlight) wait(exchange solver.ExchangeNumber, timeout time.Duration, over <-chan struct{}) bool {
	left := &f.left[exchange%2]
	if left.Load() == 0 {
		return true
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for left.Load() != 0 {
		select {
		case <-f.idle:
		case <-over:
			return false
		case <-timer.C:
			return false
		}
	}
	return true
}
