package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
	"jacobi/internal/observe/view"
	"jacobi/internal/run/method"
	"jacobi/solver"
)

// watched is what the ranks of a run have published, by rank and in order.
type watched struct {
	mu     sync.Mutex
	events map[int][]roster.Event
	final  chan struct{} // gets a token for each final message
	ended  chan struct{} // closed when the run has ended
}

// runWatched runs size ranks, which publish statistics if wanted, and returns their results, the report and what they
// have published.
func runWatched(t *testing.T, size int, wanted bool, change func(*Options)) ([]solver.Result, output.Report, *watched) {
	t.Helper()
	server := rostertest.Start(t, 0)
	w := &watched{events: map[int][]roster.Event{}, final: make(chan struct{}, size), ended: make(chan struct{})}
	stop, err := roster.WatchEvents(t.Context(), wire.Over(server.Dial()), "job-1", func(e roster.Event) {
		if e.Kind == roster.Finished {
			close(w.ended)
		}
		if e.Kind != roster.Stats {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events[e.Rank] = append(w.events[e.Rank], e)
		if s, err := stats.Parse(e.Report); err != nil {
			t.Error(err)
		} else if s.Final {
			w.final <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	dir := t.TempDir()
	var report output.Report
	var ranks []Options
	for i := range size {
		o := testOptions(t, dir, i, size)
		o.Stats, o.Config.NATS.URL = wanted, server.URL()
		o.Summarize = func(r output.Report, _ *output.Held) error { report = r; return nil }
		if change != nil {
			change(&o)
		}
		ranks = append(ranks, o)
	}
	results, errs := runAll(t, ranks)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return results, report, w
}

// await returns the messages once all final ones are there.
func (w *watched) await(t *testing.T, size int) map[int][]stats.Rank {
	t.Helper()
	for range size {
		select {
		case <-w.final:
		case <-time.After(30 * time.Second):
			t.Fatal("a rank has published no final statistics")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[int][]stats.Rank{}
	for rank, events := range w.events {
		for _, e := range events {
			s, err := stats.Parse(e.Report)
			if err != nil || e.Sweeps != s.Sweeps || float64(e.GLUPs) != s.Recent.GLUPs {
				t.Errorf("rank %d: %+v, %v", rank, e, err)
			}
			all[rank] = append(all[rank], s)
		}
	}
	return all
}

// The final statistics of each rank agree with the report, for every method and way between ranks. The first ones come
// with the first sweep, and no count falls.
func TestStatistics(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"shared": func(*Options) {},
		"nats":   func(o *Options) { o.Config.Halo.Transport = "nats" },
		"direct": func(o *Options) { o.Config.Halo.Transport = "direct" },
		"multigrid": func(o *Options) {
			o.Config.Solver.Method, o.Config.Solver.MaxIterations = "multigrid", 3
			o.Config.Grid.DType = "float64"
		},
		"checkpoints": func(o *Options) {
			o.Config.Checkpoint.Dir, o.Config.Checkpoint.Every.Iterations = o.Config.Output.Dir+"/saved", 10
		},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 3
			results, report, w := runWatched(t, size, true, change)
			for rank, all := range w.await(t, size) {
				if len(all) < 2 || all[0].Final || all[0].Elapsed > all[len(all)-1].Elapsed+10 {
					t.Errorf("rank %d has published %+v", rank, all)
				}
				for i, s := range all[1:] {
					b := all[i]
					if s.Sweeps < b.Sweeps || s.Updates < b.Updates || *s.HaloWait < *b.HaloWait ||
						s.NormWait < b.NormWait || s.Halos[0].Sent < b.Halos[0].Sent {
						t.Errorf("rank %d: %+v after %+v", rank, s, b)
					}
				}
				last := all[len(all)-1]
				checkFinal(t, last, report.Ranks[rank])
				if last.Sweeps != results[rank].Iterations || last.Sweeps != report.Sweeps {
					t.Errorf("rank %d: %d sweeps, the run did %d", rank, last.Sweeps, report.Sweeps)
				}
				if saved := report.Checkpoints; rank == 0 && saved != nil {
					if c := last.Checkpoints; c == nil || c.Written != saved.Written || c.Bytes != saved.Bytes ||
						c.Written == 0 {
						t.Errorf("checkpoints %+v, the report has %+v", c, saved)
					}
				} else if last.Checkpoints != nil {
					t.Errorf("rank %d: checkpoints %+v", rank, last.Checkpoints)
				}
			}
		})
	}
}

// checkFinal compares the final statistics of a rank with its report.
func checkFinal(t *testing.T, s stats.Rank, r output.RankReport) {
	t.Helper()
	// The kernel sums counters of its processors for VmHWM and says that the value is inaccurate (proc_pid_status(5)):
	// a later peak was 92 KiB lower.
	const inaccurate = 1 << 20
	sweeps := float64(s.Sweeps)
	if s.Stripe != r.Stripe || s.Host != r.Host || s.Device != r.Device || s.Backend != "cpu" || !s.Final ||
		s.NormWait != r.NormWait || *s.HaloWait != *r.HaloWait || s.Memory.Field != r.MemoryBytes ||
		s.Memory.Peak <= 0 || s.Memory.Peak > r.RSSBytes+inaccurate || s.Memory.Resident <= 0 || s.GPU != nil {
		t.Errorf("%+v, the report has %+v", s, r)
	}
	if math.Abs(s.Recent.GLUPs*s.Elapsed*1e9-s.Updates) > 1e-9*s.Updates || s.Updates < sweeps*float64(s.Stripe[1]-
		s.Stripe[0])*66 {
		t.Errorf("%g updates of %v in %g s at %g GLUP/s", s.Updates, s.Stripe, s.Elapsed, s.Recent.GLUPs)
	}
	if len(s.Halos) != len(r.Transports) {
		t.Fatalf("%+v, the report has %+v", s.Halos, r.Transports)
	}
	for _, h := range s.Halos {
		l := r.Transports[h.Side]
		if h.Neighbour != l.Neighbour || h.Transport != l.Transport || h.Sent+h.Received != l.Traffic.Bytes ||
			h.Sent == 0 || h.Received == 0 {
			t.Errorf("%+v, the report has %+v, %+v", h, l, l.Traffic)
		}
		if l.NATS != nil && fmt.Sprint(h.Asked, h.Resent, h.Duplicates, h.Refused, h.Lost) !=
			fmt.Sprint(l.NATS.Asked, l.NATS.Resent, l.NATS.Duplicates, l.NATS.Refused, l.NATS.Lost+l.NATS.Dropped) {
			t.Errorf("%+v, the report has %+v", h, l.NATS)
		}
	}
}

// Without a wish for statistics nothing is published.
func TestNoStatistics(t *testing.T) {
	_, _, w := runWatched(t, 2, false, nil)
	select {
	case <-w.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("rank 0 has not published the end of the run")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) > 0 {
		t.Errorf("published: %+v", w.events)
	}
}

const ms = time.Millisecond

// What a meter counts becomes the parts of an exchange, in seconds.
func TestTrafficReport(t *testing.T) {
	counted := halo.Traffic{Exchanges: 4, Bytes: 4096, CopyOut: 10 * ms, Send: 20 * ms, Wait: 30 * ms, CopyIn: 40 * ms}
	for want, traffic := range map[string]halo.Traffic{"null": {}, `{"exchanges":4,"bytes":4096,` +
		`"copy_out_seconds":0.01,"send_seconds":0.02,"wait_seconds":0.03,"copy_in_seconds":0.04}`: counted} {
		if got, err := json.Marshal(trafficReport(traffic)); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

// Over peer memory nobody knows how long rows travel.
func TestPeerTraffic(t *testing.T) {
	for exchanges, want := range map[uint64]string{0: "null", 3: `{"exchanges":3,"bytes":38400}`} {
		moved := method.Traffic{Exchanges: exchanges, Sent: 19200, Received: 19200}
		if got, err := json.Marshal(peerTraffic(moved)); err != nil || string(got) != want {
			t.Errorf("%d exchanges: %s, %v; want %s", exchanges, got, err, want)
		}
	}
}

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
