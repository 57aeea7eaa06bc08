package rank

import (
	"context"
	"errors"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/outputs"
	"jacobi/solver"
)

// stage returns a run of its own, without files, that the working ranks do among themselves, and what ends it.
func (r *run) stage(c configs.Config, name string) (s *run, done func()) {
	on := *r.session
	on.Config, on.Origin.Identity, on.share = c, r.id, r.cores
	on.Ordered, on.Stats, on.Watch, on.Check = true, false, nil, nil
	s = on.newRun(configs.Planned{Config: c, Contents: r.planned})
	s.comm, s.coarse = r.comm.Stage(name), true
	s.ctx, s.keepOn = s.comm.Context(), func() bool { return true }
	return s, func() { s.open.close(); s.comm.Close() }
}

// solveStage solves the problem of c in a stage, which ends with ctx. why says, on all ranks, why there is no solution.
func (r *run) solveStage(ctx context.Context, c configs.Config, name string, places *outputs.Places) (
	solved outputs.Solved, end solver.Result, why string, err error) {
	s, done := r.stage(c, name)
	defer done()
	defer context.AfterFunc(ctx, s.comm.Close)()
	s.places = places
	err = s.enter(s.ctx, s.comm)
	var w written
	if err == nil {
		if fault := s.checkWhole(); fault != nil {
			return solved, end, fault.Error(), nil
		}
		w, err = s.work(s.ctx)
	}
	if refused, ok := errors.AsType[*roster.RefusedError](err); ok {
		return solved, end, refused.Text, nil
	}
	if err != nil || s.idle() {
		return solved, w.result, "", err
	}
	return outputs.Solved{Mesh: output.NewMeshReport(s.problem.Mesh()), Report: w.report, Values: w.outputs.Values()},
		w.result, "", nil
}
