package rank

import (
	"context"
	"encoding/json"
	"fmt"

	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// spare reports whether this rank is known to be idle before it meets the others.
func (s *session) spare() bool { return !s.Ordered && s.Origin.Rank >= s.Config.Working() }

// idle reports whether this rank has no rows.
func (r *run) idle() bool { return r.Origin.Rank >= r.working }

// countWorking sets the number of working ranks. A launcher starts no others.
func (r *run) countWorking() {
	r.working = min(r.Origin.Size, r.Config.Working())
	if text := r.Config.Idle(); text != "" && r.Origin.Rank == 0 && !r.launched() {
		r.Log.Info(text)
	}
}

// leaveIdle leaves ranks on other nodes idle, as all ranks find with what rank 0 has told of its GPUs; see
// setup.Working. A task needs all ranks, and between jobs there is no problem.
func (r *run) leaveIdle(comm *roster.Comm) error {
	if r.Task != nil || r.problem == nil {
		return nil
	}
	first := comm.Member(0)
	e, err := extraOf(first)
	if err != nil || e.GPUs == nil {
		return err
	}
	near := 1
	for _, g := range comm.Groups() {
		switch {
		case g.First.Device != "cuda":
			return nil
		case g.First.Rank <= near && roster.InOneMemory(first, g.First) && roster.SharesDevices(first, g.First):
			near = g.End
		}
	}
	n, err := setup.Working(r.Config, r.problem.Mesh(), r.problem.Operator(), r.working, near, *e.GPUs)
	if err != nil || n == r.working {
		return err
	}
	r.working = n
	comm.SetWorking(n)
	if r.Origin.Rank == 0 {
		r.Log.Info(setup.Idle(r.Config, n))
	}
	return nil
}

// ending is what the idle ranks are told of the end of the run, from which their exit code follows.
type ending struct {
	Reason solver.StopReason `json:"reason"`
	Norm   roster.Number     `json:"norm"`
}

// awaitEnd waits on an idle rank until the working ranks have ended the run, and returns their result. A request to
// stop goes on to them.
func (r *run) awaitEnd(ctx context.Context) (w written, err error) {
	if !r.keepOn() {
		return w, r.stopped()
	}
	defer context.AfterFunc(r.Stop, func() {
		if err := roster.RequestStop(ctx, r.conn, r.runID); err != nil && ctx.Err() == nil {
			r.Log.Sugar().Warnf("the request to stop did not reach the other ranks: %v", err)
		}
	})()
	data, err := r.comm.AwaitEnd(ctx, "end")
	if err != nil {
		return w, err
	}
	var e ending
	if err := json.Unmarshal(data, &e); err != nil {
		return w, fmt.Errorf("end of the run: %w", err)
	}
	w.result.Reason, w.result.Norm = e.Reason, float64(e.Norm)
	return w, nil
}

// end returns when all working ranks have arrived, and tells the idle ones how the run has ended.
func (m *membership) end(ctx context.Context, result solver.Result) error {
	if err := m.comm.Barrier(ctx, "end"); err != nil {
		return err
	}
	data, err := json.Marshal(ending{result.Reason, roster.Number(result.Norm)})
	if err != nil {
		return err
	}
	return m.comm.End(ctx, "end", data)
}
