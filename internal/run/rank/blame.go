package rank

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"jacobi/internal/net/roster"
)

// fail tells the other ranks why this one ends, and returns the error to report for err.
func (r *run) fail(err error) error {
	err = r.blame(err)
	if told := r.abortOthers(err); told != nil {
		r.Log.Warn("the other ranks could not be told", zap.Error(told))
	}
	return fmt.Errorf("rank %d: %w", r.id.Rank, err)
}

// blame returns the cause of err. The cause of the job's end replaces it: the abort of another rank, the silence of a
// rank or the server, or a request to stop before the first sweep.
func (r *run) blame(err error) error {
	cause := context.Cause(r.ctx)
	if abort, ok := errors.AsType[*roster.AbortError](cause); ok {
		return abort
	}
	if silent, ok := errors.AsType[*roster.SilentError](cause); ok {
		return silent
	}
	if silent, ok := errors.AsType[*roster.ServerError](cause); ok {
		return silent
	}
	if errors.Is(cause, roster.ErrStopped) || errors.Is(cause, roster.ErrCancelled) {
		return cause
	}
	return r.namingTimeout(r.withFault(err))
}

// namingTimeout adds to the error of a wait that took too long the key that sets for how long ranks wait.
func (o *Options) namingTimeout(err error) error {
	_, told := errors.AsType[*roster.AbortError](err)
	if told || !roster.IsConsequence(err) || strings.Contains(err.Error(), "halo.timeout") {
		return err
	}
	return fmt.Errorf("%w (halo.timeout %v)", err, o.Config.Halo.Timeout)
}

// withFault adds a known fault of the connection to the error of a wait that it may explain. The result is no longer a
// consequence of another rank's failure.
func (c *connection) withFault(err error) error {
	_, told := errors.AsType[*roster.AbortError](err)
	if c.fault == nil || told || !roster.IsConsequence(err) {
		return err
	}
	if fault := c.fault(); fault != nil {
		return fmt.Errorf("%v; %v", err, fault)
	}
	return err
}

// abortOthers tells the other ranks why this one ends. After a signal that ends the run of a launcher it does nothing:
// the launcher has signalled all ranks, and it reports the end of the run.
func (r *run) abortOthers(err error) error {
	if _, stop := errors.AsType[*StopError](err); stop && r.launched() && !r.Ordered {
		return nil
	}
	return r.comm.Abort(err)
}
