package rank

import (
	"context"
	"time"

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
	detach, err := live.Attach(ctx, r.comm.Conn(), r.id.RunID)
	if err != nil {
		return err
	}
	r.open.add(func() error {
		detach()
		live.EndIn(r.Config.Output.Dir)
		server.Linger(r.comm.Context(), func(text string) { r.Log.Info(text) })
		return nil
	})
	server.Serve(board, live)
	r.Viewed(server.URL())
	return nil
}
