package rank

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// StopError is the error of a rank that a signal stopped before its first sweep.
type StopError struct{ Signal syscall.Signal }

// Error implements error.
func (e *StopError) Error() string {
	return fmt.Sprintf("stopped by %s before the first sweep", unix.SignalName(e.Signal))
}

// stopRequested returns a function that reports whether this rank should stop: Stop has ended, or the launcher has
// asked all ranks to stop.
func (r *run) stopRequested() func() bool {
	stop, asked := r.Stop, r.comm.StopRequested()
	return func() bool {
		if stop.Err() != nil {
			return true
		}
		select {
		case <-asked:
			return true
		default:
			return false
		}
	}
}
