package main

import (
	"context"
	"time"

	"jacobi/configs"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/view"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/plan"
)

// viewGrace bounds the time in which open pages are given the end of a run.
const viewGrace = 2 * time.Second

// liveView is the page of a run; nil without one.
type liveView struct {
	server *view.Server
	live   *view.Live
}

// openView begins to serve the page of a run that is about to start, if the configuration wants one.
func openView(cfg configs.Config, scr *screen) (*liveView, error) {
	if cfg.View.Listen == "" {
		return nil, nil
	}
	server, err := view.Listen(cfg.View.Listen)
	if err != nil {
		return nil, err
	}
	board := view.NewBoard()
	v := &liveView{server, view.NewLive(board)}
	server.Serve(board, v.live)
	scr.onWarn = v.live.Warn
	scr.always(viewAt(server))
	return v, nil
}

// viewAt says where the page is.
func viewAt(s *view.Server) string { return "the view is at " + s.URL() }

// watch shows an attempt of the run.
func (v *liveView) watch() attempt.Watch {
	if v == nil {
		return nil
	}
	return func(ctx context.Context, _ *plan.Plan, conn *wire.Conn, runID string) (stop func(), err error) {
		return v.live.Attach(ctx, conn, runID)
	}
}

// end shows how the run ended; fault is "" if it has results, in dir.
func (v *liveView) end(fault, dir string) {
	switch {
	case v == nil:
	case fault != "":
		v.live.Fail(fault)
	default:
		v.live.EndIn(dir)
	}
}

// linger leaves the page of a run that has ended for a browser that has not opened it yet.
func (v *liveView) linger(ctx context.Context, scr *screen) {
	if v != nil {
		v.server.Linger(ctx, scr.Say)
	}
}

// close ends the page. Pages that are open keep what they show.
func (v *liveView) close() {
	if v != nil {
		v.server.Close(viewGrace)
		v.live.Close()
	}
}
