package rank

import (
	"context"
	"time"

	"jacobi/internal/view"
)

// pageGrace bounds the time in which open pages are given the end of the run.
const pageGrace = 2 * time.Second

// openPage serves the page of the run on rank 0, if the configuration wants one and no launcher serves it.
func (j *joined) openPage(ctx context.Context, open *closers) error {
	at := j.Config.View.Listen
	if j.id.Rank != 0 || j.launched() || at == "" {
		return nil
	}
	server, err := view.Listen(at)
	if err != nil {
		return err
	}
	open.add(func() error { server.Close(pageGrace); return nil })
	board := view.NewBoard()
	live := view.NewLive(board)
	detach, err := live.Attach(ctx, j.team.Conn(), j.id.RunID)
	if err != nil {
		return err
	}
	open.add(func() error {
		detach()
		live.End()
		return nil
	})
	server.Serve(board, live)
	j.Viewed(server.URL())
	return nil
}
