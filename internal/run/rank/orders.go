package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/desk"
	"jacobi/solver"
)

// worker is a rank that does the jobs that a launcher orders, one after the other, on one session.
type worker struct {
	*session
	solo *session        // the same for jobs that this rank does without the others
	desk *desk.Desk      // the orders of this rank
	gpu  *driver.Context // nil if the CPU sweeps
}

// obey does what is ordered, until the orders end or Stop does. A job that is refused, or that fails without harm to
// the session, is answered with the reason, and the next one follows.
func (s *session) obey(ctx context.Context) (result solver.Result, err error) {
	all := s.newRun(configs.Planned{Config: s.Config}) // what the ranks do together between the jobs
	if err := all.takePlace(s.all); err != nil {
		return result, err
	}
	c := &worker{session: s}
	if err := all.takeGPU(ctx); err != nil {
		return result, err
	}
	s.share = all.cores
	if err := c.holdGPU(); err != nil {
		return result, s.onGPU(err)
	}
	if !s.keepOn() {
		return result, context.Cause(s.Stop)
	}
	c.solo = s.soloist()
	if c.desk, err = desk.AtRank(ctx, s.conn, s.runID, s.self.Rank); err != nil {
		return result, err
	}
	s.open.add(func() error { c.desk.Close(); return nil })
	if err := c.desk.Send(ctx, desk.Answer{}); err != nil {
		return result, err
	}
	defer context.AfterFunc(s.Stop, func() {
		_ = c.desk.Send(ctx, desk.Answer{Stop: true}) // fails only when the session ends anyway
	})()
	for {
		var order desk.Order
		if err := c.desk.Recv(ctx, &order); err != nil {
			return result, err
		}
		if order.End {
			return result, c.end(ctx, order.Stopped)
		}
		answer, err := c.one(ctx, order)
		if err != nil {
			return result, err
		}
		if answer != nil && (s.self.Rank == 0 || order.Alone) {
			if err := c.desk.Send(ctx, answer); err != nil {
				return result, err
			}
		}
	}
}

// soloist returns the same session for jobs that this rank does without the others.
func (s session) soloist() *session {
	at := roster.Identity{RunID: s.self.RunID, Size: 1, LocalSize: 1}
	s.Origin.Identity, s.self.Identity = at, at
	return &s
}

// holdGPU keeps the context of this rank's GPU, its kernels and its memory from one job to the next.
func (c *worker) holdGPU() error {
	if !c.sweepsOnGPU() {
		return nil
	}
	gpu, err := c.gpus.Devices[c.chosen.Index].Retain(driver.ScheduleAuto)
	if err != nil {
		return err
	}
	c.gpu = gpu
	c.open.add(c.gpu.Close)
	c.gpu.Keep()
	return nil
}

// end tells the launcher that the ranks have only to end, and whether they were stopped.
func (c *worker) end(ctx context.Context, stopped bool) error {
	ctx, cancel := awake.WithTimeout(ctx, c.Config.Halo.Timeout)
	defer cancel()
	if err := c.desk.Flush(ctx); err != nil {
		return fmt.Errorf("last answer: %w", err)
	}
	if c.self.Rank == 0 {
		verdict := configs.Done
		if stopped || c.Stop.Err() != nil {
			verdict = configs.Interrupted
		}
		e := roster.Event{Kind: roster.Finished, Verdict: string(verdict), Report: json.RawMessage("{}")}
		if err := c.all.Publish(e); err != nil {
			return err
		}
	}
	return c.all.Barrier(ctx, "end")
}

// one does one job. A job that a signal has stopped before its first sweep has no answer: it has not begun. An error
// ends the session.
func (c *worker) one(ctx context.Context, order desk.Order) (answer *desk.Answer, err error) {
	answer = &desk.Answer{Number: order.Number}
	on, sub := c.session, c.all.Sub
	if order.Alone {
		on, sub = c.solo, c.all.Alone
	}
	comm := sub(order.Number)
	defer comm.Close()
	job, err := configs.FromDocument(order.Document, c.Config)
	if err != nil {
		return answer, err
	}
	r := on.newRun(job)
	r.order = order
	var cancel context.CancelCauseFunc
	r.ctx, cancel = context.WithCancelCause(comm.Context())
	r.keepOn = c.untilStopped(comm, cancel)
	r.open.add(func() error { cancel(nil); return nil })
	defer func() {
		r.open.close()
		if c.gpu != nil && err == nil {
			err = c.onGPU(c.gpu.Renew())
		}
	}()
	w, err := r.among(comm)
	if err == nil && w.report != nil {
		answer.Report, err = json.Marshal(w.report)
	}
	refused, isRefused := errors.AsType[*roster.RefusedError](err)
	switch {
	case err == nil:
	case isRefused:
		answer.Refused = refused.Text
	case ctx.Err() != nil:
		return answer, context.Cause(ctx)
	case errors.Is(err, driver.ErrContextLost):
		return answer, err
	default:
		switch err := r.fail(err); {
		case errors.Is(err, roster.ErrStopped):
			return nil, nil
		case errors.Is(err, roster.ErrCancelled):
			answer.Refused = roster.ErrCancelled.Error()
		default:
			answer.Failed = err.Error()
		}
	}
	return answer, nil
}
