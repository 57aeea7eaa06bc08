package rank

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/frames"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/view"
)

// pageGrace bounds the time in which open pages are given the end of the run.
const pageGrace = 2 * time.Second

// openPage serves the page of the run on rank 0, if the configuration wants one and no launcher serves it.
func (r *run) openPage(ctx context.Context) error {
	at := r.Config.View.Listen
	if r.id.Rank != 0 || r.launched() || at == "" {
		return nil
	}
	server, err := view.Listen(at)
	if err != nil {
		return err
	}
	board := view.NewBoard()
	live := view.NewLive(board)
	r.open.add(func() error { server.Close(pageGrace); live.Close(); return nil })
	detach, err := live.Attach(ctx, r.team.Conn(), r.id.RunID)
	if err != nil {
		return err
	}
	r.open.add(func() error {
		detach()
		live.EndIn(r.Config.Output.Dir)
		server.Linger(r.team.Context(), func(text string) { r.Log.Info(text) })
		return nil
	})
	server.Serve(board, live)
	r.Viewed(server.URL())
	return nil
}

// openFrames makes the run answer viewers. All ranks call it.
func (r *run) openFrames() (*frames.Sender, error) {
	return frames.Open(frames.Options{Team: r.team, View: r.view(), Stripes: r.Stripes, Norms: r.layout.Norms,
		Goal: r.goal, Run: r.describeRun(), Scale: r.Config.Output.PictureScale})
}

// describeRun describes the run as its report will.
func (r *run) describeRun() view.Run {
	c, setup := r.Config, r.problem.Setup(r.fixed)
	run := view.RunOf(output.Report{Name: c.Run.Name, RunID: r.id.RunID, Problem: c.Problem.Title(),
		Mesh: output.NewMeshReport(r.layout.Mesh), Setup: &setup, Method: c.Solver.Method,
		MaxIterations: c.Solver.MaxIterations})
	run.Facts = slices.Concat(run.Facts, [][2]string{
		{"Ranks", fmt.Sprintf("%d, halo depth %d", r.id.Size, r.layout.Depth)},
		{"Method", c.Solver.Method},
		{"Ends", endOf(c.Solver)},
	})
	return run
}

// endOf says in words when a run ends.
func endOf(s configs.Solver) string {
	text := fmt.Sprintf("after %d %ss", s.MaxIterations, s.Step())
	if s.RelativeTolerance > 0 {
		text = fmt.Sprintf("at a norm of %g of that of the data, or ", s.RelativeTolerance) + text
	}
	if s.Tolerance > 0 {
		text = fmt.Sprintf("at a norm of %g, or ", s.Tolerance) + text
	}
	return text
}
