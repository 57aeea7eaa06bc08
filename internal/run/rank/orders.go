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

// study is a rank that does many runs, one after the other, on one session.
type study struct {
	*session
	solo *session        // the same for runs that this rank does without the others
	all  *run            // what the ranks do together between the runs
	desk *desk.Desk      // the orders of this rank
	gpu  *driver.Context // nil if the CPU sweeps
}

// Study takes a rank through the start, and then through the runs that the launcher orders. A run that is refused, or
// that fails without harm to its session, is answered with the reason, and the next one follows.
func Study(ctx context.Context, o Options) (solver.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := o.start(cancel)
	defer s.open.close()
	defer cancel(nil)
	st := &study{session: s, all: s.newRun(o.Config)}
	if err := st.arrive(ctx); err != nil {
		if stop, ok := errors.AsType[*StopError](context.Cause(ctx)); ok {
			return solver.Result{}, stop
		}
		return solver.Result{}, err
	}
	result, err := st.runs(st.all.comm.Context())
	if err != nil {
		return result, st.all.fail(err)
	}
	return result, nil
}

// arrive takes what belongs to the start: the connection, the devices, and the other ranks.
func (st *study) arrive(ctx context.Context) error {
	st.all.working = st.Origin.Size
	if err := inTurn(ctx, st.connect, func(context.Context) error { return st.openDevices() }); err != nil {
		return err
	}
	var err error
	if st.self, err = st.all.describe(); err != nil {
		return err
	}
	if err := st.meet(ctx, st.self, st.all.takePlace); err != nil {
		return st.withFault(err)
	}
	st.many, st.share = true, st.all.cores
	return nil
}

// soloist returns the same session for runs that this rank does without the others.
func (s session) soloist() *session {
	at := roster.Identity{RunID: s.self.RunID, Size: 1, LocalSize: 1}
	s.Origin.Identity, s.self.Identity = at, at
	return &s
}

// runs does what is ordered, until the orders end or Stop does.
func (st *study) runs(ctx context.Context) (result solver.Result, err error) {
	if err := st.all.takeGPU(ctx); err != nil {
		return result, err
	}
	if err := st.holdGPU(); err != nil {
		return result, st.onGPU(err)
	}
	if !st.keepOn() {
		return result, context.Cause(st.Stop)
	}
	st.solo = st.soloist()
	rank := st.all.id.Rank
	if st.desk, err = desk.AtRank(ctx, st.conn, st.runID, rank); err != nil {
		return result, err
	}
	st.open.add(func() error { st.desk.Close(); return nil })
	if err := st.desk.Send(ctx, desk.Answer{}); err != nil {
		return result, err
	}
	defer context.AfterFunc(st.Stop, func() {
		_ = st.desk.Send(ctx, desk.Answer{Stop: true}) // fails only when the session ends anyway
	})()
	for {
		var order desk.Order
		if err := st.desk.Recv(ctx, &order); err != nil {
			return result, err
		}
		if order.End {
			return result, st.end(ctx, order.Stopped)
		}
		answer, err := st.one(ctx, order)
		if err != nil {
			return result, err
		}
		if rank == 0 || order.Alone {
			if err := st.desk.Send(ctx, answer); err != nil {
				return result, err
			}
		}
	}
}

// holdGPU keeps the context of this rank's GPU, its kernels and its memory from one run to the next.
func (st *study) holdGPU() error {
	if !st.sweepsOnGPU() {
		return nil
	}
	all, err := st.gpus.Driver.Devices()
	if err != nil {
		return err
	}
	if st.gpu, err = all[st.chosen.Index].Retain(driver.ScheduleAuto); err != nil {
		return err
	}
	st.open.add(st.gpu.Close)
	st.gpu.Keep()
	return nil
}

// end tells the launcher that the ranks have only to end, and whether they were stopped.
func (st *study) end(ctx context.Context, stopped bool) error {
	ctx, cancel := awake.WithTimeout(ctx, st.Config.Halo.Timeout)
	defer cancel()
	if err := st.desk.Flush(ctx); err != nil {
		return fmt.Errorf("last answer: %w", err)
	}
	if st.all.id.Rank == 0 {
		verdict := configs.Done
		if stopped || st.Stop.Err() != nil {
			verdict = configs.Interrupted
		}
		e := roster.Event{Kind: roster.Finished, Verdict: string(verdict), Report: json.RawMessage("{}")}
		if err := st.all.comm.Publish(e); err != nil {
			return err
		}
	}
	return st.all.comm.Barrier(ctx, "end")
}

// one does one run. An error ends the session.
func (st *study) one(ctx context.Context, order desk.Order) (answer desk.Answer, err error) {
	answer.Number = order.Number
	on, sub := st.session, st.all.comm.Sub
	if order.Alone {
		on, sub = st.solo, st.all.comm.Alone
	}
	comm := sub(order.Number)
	defer comm.Close()
	c, err := configs.FromDocument(order.Document, st.Config)
	if err != nil {
		return answer, err
	}
	r := on.newRun(c)
	r.comm, r.order = comm, order
	defer func() {
		r.open.close()
		if st.gpu != nil && err == nil {
			err = st.onGPU(st.gpu.Renew())
		}
	}()
	answer.Report, err = r.among(comm.Context())
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
		answer.Failed = r.fail(err).Error()
	}
	return answer, nil
}

// among does the run among the ranks of its session, and returns its report on rank 0.
func (r *run) among(ctx context.Context) (json.RawMessage, error) {
	r.working = min(r.Origin.Size, r.Config.Working())
	self, fault := r.place(ctx)
	if err := r.comm.Agree(ctx, self, fault); err != nil {
		return nil, err
	}
	if err := r.takePlace(r.comm); err != nil {
		return nil, err
	}
	if r.idle() {
		_, err := r.awaitEnd(ctx)
		return nil, err
	}
	w, err := r.solveAll(ctx)
	if err != nil || w.report == nil {
		return nil, err
	}
	return json.Marshal(w.report)
}

// place evaluates this rank's part of the problem. A fault is why the rank cannot take part in the run.
func (r *run) place(ctx context.Context) (self roster.Member, fault error) {
	self = r.self
	if fault = r.prepare(ctx); fault == nil {
		r.tell(&self)
	}
	return self, fault
}
