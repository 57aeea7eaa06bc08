package rank

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/view"
	"jacobi/solver"
)

// endlessOptions returns the options of ranks that sweep until stop ends.
func endlessOptions(t *testing.T, url, preset string, size int, stop context.Context) (ranks []Options) {
	t.Helper()
	dir := t.TempDir()
	for i := range size {
		o := testOptions(t, dir, i, size)
		o.Config.NATS.URL, o.Stop = url, stop
		o.Config.Problem.Preset, o.Config.Grid.DType = preset, "float64"
		o.Config.Grid.NX, o.Config.Grid.NY = 512, 600
		o.Config.Solver.Method, o.Config.Solver.MaxIterations, o.Config.Solver.Tolerance = "jacobi", 1_000_000_000, 0
		o.Config.Output.Picture, o.Config.Output.Results = "", false
		ranks = append(ranks, o)
	}
	return ranks
}

// frameAfter returns the frame of a window after exactly the given number of sweeps, from the file of another run.
func frameAfter(t *testing.T, preset string, sweeps int, w view.Window) []float64 {
	t.Helper()
	o := endlessOptions(t, "", preset, 1, t.Context())[0]
	o.Config.Solver.MaxIterations = sweeps
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	files, err := view.Open(t.Context(), o.Config.Output.Dir, view.NewBoard())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	f, err := files.Frame(t.Context(), w, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f.Values
}

// Viewers see the field as it is after the sweeps that a frame names, whole and in windows, walls included, and at last
// the field of the end.
func TestFramesOfARun(t *testing.T) {
	for _, preset := range []string{"gtc2019", "dirichlet"} {
		t.Run(preset, func(t *testing.T) {
			server := rostertest.Start(t, 0)
			live := view.NewLive(view.NewBoard())
			detach, err := live.Attach(t.Context(), wire.Over(server.Dial()), "job-1")
			if err != nil {
				t.Fatal(err)
			}
			defer detach()
			stop, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ranks := endlessOptions(t, server.URL(), preset, 3, stop)
			var results []solver.Result
			var wg sync.WaitGroup
			wg.Go(func() {
				var errs []error
				results, errs = runAll(t, ranks)
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
			})
			ctx, done := context.WithTimeout(t.Context(), 3*time.Minute)
			defer done()
			all := view.Window{X1: 512, Y1: 600, Cols: 64, Rows: 75}
			part := view.Window{X0: 3, X1: 490, Y0: 100, Y1: 600, Cols: 61, Rows: 77}
			var frames []*view.Frame
			for _, ask := range []struct {
				view.Window
				after int // the frame before it; -1: none
			}{{all, -1}, {all, 0}, {part, -1}} {
				after := uint64(0)
				if ask.after >= 0 {
					after = frames[ask.after].Number
				}
				f, err := live.Frame(ctx, ask.Window, after)
				if err != nil {
					t.Fatal(err)
				}
				frames = append(frames, f)
			}
			if frames[1].Number <= frames[0].Number || frames[1].Sweeps <= frames[0].Sweeps {
				t.Errorf("frame %d of sweep %d after frame %d of sweep %d", frames[1].Number, frames[1].Sweeps,
					frames[0].Number, frames[0].Sweeps)
			}
			cancel(&StopError{})
			last := frames[2]
			wg.Wait()
			if t.Failed() {
				return
			}
			for last.Sweeps < results[0].Iterations {
				f, err := live.Frame(ctx, part, last.Number)
				if err != nil {
					t.Fatalf("the last frame is of sweep %d, and the run did %d: %v", last.Sweeps,
						results[0].Iterations, err)
				}
				last = f
			}
			for _, f := range []*view.Frame{frames[0], frames[2], last} {
				if want := frameAfter(t, preset, f.Sweeps, f.Window); !slices.Equal(f.Values, want) {
					t.Errorf("the frame after %d sweeps is not the field of then", f.Sweeps)
				}
			}
		})
	}
}
