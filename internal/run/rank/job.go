package rank

import (
	"context"
	"errors"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/desk"
	"jacobi/internal/run/outputs"
	"jacobi/solver"
)

// run is what a rank has of one job of its session. The phases fill it, each a part of its own.
type run struct {
	*session
	Config    configs.Config // of the job; that of the session belongs to the start
	open      closers        // of what the phases of the job have opened
	startedAt time.Time
	order     desk.Order // of a job that was ordered
	// ctx is that of the job. It ends when the job is stopped before its first sweep; keepOn then returns false, and
	// is called before that sweep.
	ctx    context.Context
	keepOn func() bool

	prepared
	membership
	division
	opened
	wires
	state
	outputs *outputs.Outputs
	solution
}

// written is the end of a job.
type written struct {
	result solver.Result
	report *output.Report // of the job; rank 0 only
	held   *output.Held   // output.dir, on rank 0 of a run without a launcher; otherwise nil
}

// only does the job of the configuration, which ends with the session.
func (s *session) only() (solver.Result, error) {
	r := s.newRun(configs.Planned{Config: s.Config, Contents: s.Contents})
	defer r.open.close()
	w, err := r.among(s.all)
	if _, refused := errors.AsType[*roster.RefusedError](err); refused {
		return w.result, err // that of all ranks
	}
	if err != nil {
		return w.result, r.fail(err)
	}
	if !r.launched() && w.report != nil {
		err = r.Summarize(*w.report, w.held)
	}
	missed := r.Config.Solver.Verdict(w.result.Reason) == configs.Missed
	if err == nil && missed && !r.launched() && r.Origin.Size > 1 {
		r.leave()
	}
	return w.result, err
}

// among does the job among the ranks of comm.
func (r *run) among(comm *roster.Comm) (w written, err error) {
	if err := r.enter(r.ctx, comm); err != nil {
		return w, err
	}
	switch {
	case r.idle():
		return r.awaitEnd(r.ctx)
	case r.Task != nil:
		return r.task(r.ctx)
	}
	return r.solveAll(r.ctx)
}

// enter takes the phases in which the ranks of comm agree on the job and take their places. If some cannot take part,
// all get the same *roster.RefusedError.
func (r *run) enter(ctx context.Context, comm *roster.Comm) error {
	r.comm, r.id = comm, r.self.Identity
	r.countWorking()
	share, fault := r.prepare(ctx)
	if fault != nil && ctx.Err() != nil {
		return fault // nobody is left to agree with
	}
	united, err := roster.AgreeOn(ctx, comm, share, fault, r.unite)
	if err != nil {
		return err
	}
	if err := r.problem.Adopt(united); err != nil {
		return err
	}
	return r.takePlace(comm)
}

// wire takes the phases from the layout to the links.
func (r *run) wire(ctx context.Context) error {
	return inTurn(ctx, r.layOut, r.openMethod, r.wireUp)
}

// solveAll takes the phases from the layout to the outputs.
func (r *run) solveAll(ctx context.Context) (written, error) {
	err := inTurn(ctx, r.watch, r.openPage, r.wire, r.load, r.openOutputs)
	if err != nil {
		return written{}, err
	}
	defer r.outputs.Abort()
	if err := r.solve(ctx); err != nil {
		return written{}, err
	}
	w := written{result: r.result, held: r.outputs.Held()}
	if w.report, err = r.outputs.Write(ctx, w.result, r.checkpointReport(), r.rankReport); err != nil {
		return w, r.onGPU(err)
	}
	// Until all ranks arrive here, neighbours may ask the links for rows again.
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	return w, r.end(ctx, w.result)
}

// leave closes what the run has opened, and waits until all ranks have. A scheduler may kill the other ranks as soon as
// one has ended with a code other than 0, so rank 0 has to be done by then. A rank that does not come is no fault any
// more.
func (r *run) leave() {
	if r.id.Rank == 0 && r.Linger != nil {
		r.Linger()
	}
	r.open.close()
	ctx, cancel := awake.WithTimeout(r.comm.Context(), r.fileTimeout()+r.Config.Metrics.Linger)
	defer cancel()
	if r.idle() {
		_, _ = r.comm.AwaitEnd(ctx, "leave")
	} else if r.comm.Barrier(ctx, "leave") == nil {
		_ = r.comm.End(ctx, "leave", nil)
	}
}
