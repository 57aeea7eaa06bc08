package rank

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
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
			o.Config.Checkpoint.Dir, o.Config.Checkpoint.Every.Sweeps = o.Config.Output.Dir+"/saved", 10
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
