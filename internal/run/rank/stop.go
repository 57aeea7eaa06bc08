package rank

import (
	"context"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"jacobi/internal/net/roster"
)

// StopError is the error of a rank that a signal stopped before its first sweep.
type StopError struct{ Signal syscall.Signal }

// Error implements error.
func (e *StopError) Error() string {
	return fmt.Sprintf("stopped by %s before the first sweep", unix.SignalName(e.Signal))
}

// Unwrap makes errors.Is(err, roster.ErrStopped) true.
func (e *StopError) Unwrap() error { return roster.ErrStopped }

// stopRequested returns a function that reports whether this rank should stop: Stop has ended, or the launcher has
// asked all ranks to stop.
func (r *run) stopRequested() func() bool {
	stop, asked := r.Stop, r.comm.StopRequested()
	return func() bool { return stop.Err() != nil || asked.Err() != nil }
}

// untilStopped has cancel called when Stop ends or the launcher cancels the job. After keepOn it is not called any
// more: a job that sweeps stops at a common sweep. keepOn returns false if it was called before.
func (o *Options) untilStopped(comm *roster.Comm, cancel context.CancelCauseFunc) (keepOn func() bool) {
	stop := context.AfterFunc(o.Stop, func() { cancel(context.Cause(o.Stop)) })
	asked := context.AfterFunc(comm.StopRequested(), func() { cancel(roster.ErrCancelled) })
	return sync.OnceValue(func() bool { return stop() && asked() })
}

// stopped returns the cause of the end of a job whose keepOn has returned false.
func (r *run) stopped() error {
	<-r.ctx.Done() // at once
	return context.Cause(r.ctx)
}
