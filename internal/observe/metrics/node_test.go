package metrics

import (
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
)

// serveNode serves n until the test ends.
func serveNode(t *testing.T, n *Node) *Server {
	t.Helper()
	s, err := ListenNode("127.0.0.1:0", n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A node has the metrics of its ranks, under the names of a run, and tells runs apart.
func TestNode(t *testing.T) {
	n := NewNode()
	s := serveNode(t, n)
	info := Info{Name: "first", Version: "v1", Method: "jacobi", Problem: "gtc2019", DType: "float32", NX: 64, NY: 32,
		Ranks: 3, Tolerance: 0.5, MaxIterations: 9}
	a := n.Begin("a", info)
	if got := scrape(t, s.URL()); len(got) > 0 {
		t.Errorf("before a rank has told anything: %v", got)
	}
	a.now = func() time.Time { return time.UnixMilli(1700000000250) }
	wait := 0.5
	a.Event(roster.Event{Kind: roster.Progress, Norm: 0.25})
	for _, rank := range []int{0, 2} {
		wait /= 10
		a.Event(event(t, rank, stats.Rank{Host: "here", Backend: "cpu", Sweeps: 7,
			Recent: stats.Recent{Seconds: 1, HaloWait: &wait}}))
	}
	b := n.Begin("b", Info{Name: "second", Ranks: 1})
	b.now = a.now
	b.Event(event(t, 0, stats.Rank{Host: "here", Sweeps: 3}))
	got := scrape(t, s.URL())
	for key, want := range map[string]string{
		`jacobi_run_info{dtype="float32",method="jacobi",name="first",nx="64",ny="32",problem="gtc2019",ranks="3",` +
			`run="a",version="v1"}`: "1",
		`jacobi_norm{run="a"}`: "0.25", `jacobi_tolerance{run="a"}`: "0.5", `jacobi_max_iterations{run="a"}`: "9",
		`jacobi_rank_info{backend="cpu",device="",host="here",rank="2",run="a"}`: "1",
		`jacobi_iterations_total{rank="0",run="a"}`:                              "7",
		`jacobi_iterations_total{rank="2",run="a"}`:                              "7",
		`jacobi_iterations_total{rank="0",run="b"}`:                              "3",
		`jacobi_rank_seen_timestamp_seconds{rank="0",run="b"}`:                   "1.70000000025e+09",
	} {
		if got[key] != want {
			t.Errorf("%s %q, want %s", key, got[key], want)
		}
	}
	for key := range got {
		if strings.Contains(key, `rank="1"`) || strings.HasPrefix(key, "jacobi_rank_lagging") ||
			strings.HasPrefix(key, "jacobi_restarts_total") || !strings.Contains(key, `run="`) {
			t.Errorf("a node has %s", key)
		}
	}
	problems, err := testutil.CollectAndLint(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// The values of a run that has ended stay for a minute, with what still arrives. A later run of the same id keeps its
// own.
func TestNodeAfterARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNode()
		registry := prometheus.NewRegistry()
		registry.MustRegister(n)
		iterations := func() map[string]float64 {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				if f.GetName() != "jacobi_iterations_total" {
					continue
				}
				for _, m := range f.GetMetric() {
					for _, l := range m.GetLabel() {
						if l.GetName() == "run" {
							got[l.GetValue()] = m.GetCounter().GetValue()
						}
					}
				}
			}
			return got
		}
		want := func(want map[string]float64) {
			t.Helper()
			if got := iterations(); !maps.Equal(got, want) {
				t.Errorf("iterations %v, want %v", got, want)
			}
		}
		var gone atomic.Int32
		begin := func(id string, sweeps int) *Run {
			r := n.Begin(id, Info{Ranks: 1})
			r.Event(event(t, 0, stats.Rank{Sweeps: sweeps}))
			return r
		}
		end := func(id string, r *Run) { n.End(id, r, func() { gone.Add(1) }) }
		a, b := begin("a", 1), begin("b", 2)
		end("a", a)
		end("b", b)
		a.Event(event(t, 0, stats.Rank{Sweeps: 5, Final: true}))
		time.Sleep(nodeStay - time.Second)
		want(map[string]float64{"a": 5, "b": 2})
		begin("b", 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want(map[string]float64{"b": 3})
		if gone.Load() != 2 {
			t.Errorf("%d runs are gone, want 2", gone.Load())
		}
	})
}
