package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"jacobi/configs"
	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
)

// event returns the event in which a rank tells s.
func event(t *testing.T, rank int, s stats.Rank) roster.Event {
	t.Helper()
	data, err := json.Marshal(s)
	must(t, err)
	return roster.Event{Kind: roster.Stats, Rank: rank, Report: data}
}

// full returns a Run with a value for every metric.
func full(t *testing.T) *Run {
	t.Helper()
	c := configs.Default()
	c.Run.Name, c.Run.Ranks, c.Grid.NX, c.Grid.NY = "a \"name\"\n", 2, 64, 32
	r := NewRun()
	r.now = func() time.Time { return time.UnixMilli(1700000000250) }
	r.Begin(InfoOf(c, c.Run.Ranks))
	r.Event(event(t, 0, stats.Rank{Final: true, Sweeps: 1}))
	r.Begin(InfoOf(c, c.Run.Ranks)) // forgets the first start
	r.Event(roster.Event{Kind: roster.Progress, Sweeps: 12, Norm: 0.5, End: 20, Left: 3 * time.Second})
	r.Event(event(t, 0, stats.Rank{Host: "a", Backend: "cuda", Device: "H200\x1b", Stripe: [2]int{1, 16}, Elapsed: 2,
		Sweeps: 10, Updates: 9600, HaloWait: new(0.5), NormWait: 0.25,
		Recent: stats.Recent{Seconds: 1, HaloWait: new(0.5)}, RefusedMessages: 3,
		Halos: []stats.Halo{{Side: "bottom", Neighbour: 1, Transport: "nats", Sent: 10, Received: 20, Asked: 1,
			Resent: 2, Duplicates: 3, Refused: 4, Lost: 5}},
		Checkpoints: &stats.Checkpoints{Written: 2, Failed: 1, Sweeps: 8, Bytes: 4096, Seconds: 0.5},
		Memory:      stats.Memory{Field: 1, Resident: 2, Peak: 3},
		GPU: &stats.GPU{Index: 4, Name: "NVIDIA H200", UUID: "GPU-1", Celsius: new(int64(45)),
			Milliwatts: new(int64(67500)), UsedBytes: new(int64(99)), SMClock: new(int64(1980)),
			Corrected: new(int64(6)), Uncorrected: new(int64(0)), Throttled: []string{"power cap"}},
	}))
	r.Event(event(t, 1, stats.Rank{Host: "b", Recent: stats.Recent{Seconds: 1, HaloWait: new(0.)}}))
	return r
}

// read returns what a server answers.
func read(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, answer.Status, err, text)
	}
	return string(text)
}

// golden compares text with a file, which has VERSION for the version of the program.
func golden(t *testing.T, name, text string) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name)
	must(t, err)
	if want := strings.ReplaceAll(string(want), "VERSION", version.String()); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// scrape returns the samples that a server answers, by name and labels.
func scrape(t *testing.T, url string) map[string]string {
	t.Helper()
	samples := map[string]string{}
	for line := range strings.Lines(read(t, url)) {
		if i := strings.LastIndexByte(line, ' '); line[0] != '#' {
			samples[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return samples
}

// serve serves r until the test ends.
func serve(t *testing.T, r *Run) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", r)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Every value of the ranks' messages reaches Prometheus in base units.
func TestSamples(t *testing.T) { golden(t, "run.txt", read(t, serve(t, full(t)).URL())) }

// lint checks that names and help follow Prometheus's conventions.
func lint(t *testing.T, c prometheus.Collector) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(c))
	problems, err := testutil.GatherAndLint(registry)
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestConventions(t *testing.T) { lint(t, full(t)) }

var metricName = regexp.MustCompile(`jacobi_[a-z0-9_]+`)

// labels returns the labels of all metrics, by name, as docs/outputs.md writes them.
func labels(t *testing.T) map[string]string {
	t.Helper()
	r := full(t)
	metrics := make(chan prometheus.Metric)
	go func() { r.Collect(metrics); close(metrics) }()
	all := map[string]string{}
	for m := range metrics {
		_, list, _ := strings.Cut(m.Desc().String(), "variableLabels: {")
		all[metricName.FindString(m.Desc().String())] = strings.ReplaceAll(strings.TrimRight(list, "}"), ",", ", ")
	}
	return all
}

// docs/outputs.md lists the metrics and their labels.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/outputs.md")
	must(t, err)
	listed := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| ([a-z, ]*) \\| (`jacobi_.*)")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		for _, name := range metricName.FindAllString(row[2], -1) {
			listed[name] = strings.TrimPrefix(row[1], "none")
		}
	}
	if want := labels(t); !maps.Equal(listed, want) {
		t.Errorf("docs/outputs.md lists %q, want %q", listed, want)
	}
	for _, name := range metricName.FindAllString(string(text), -1) {
		if _, ok := listed[name]; !ok {
			t.Errorf("docs/outputs.md names %s, which is no metric", name)
		}
	}
}

// What no rank of the run sends changes nothing.
func TestStrangeEvents(t *testing.T) {
	r := full(t)
	before := scrape(t, serve(t, r).URL())
	r.Event(event(t, -1, stats.Rank{Sweeps: 7}))
	r.Event(event(t, 2, stats.Rank{Sweeps: 7}))
	r.Event(event(t, 0, stats.Rank{Sweeps: -7}))
	r.Event(roster.Event{Kind: roster.Stats, Report: json.RawMessage("{")})
	r.Event(roster.Event{Kind: roster.Aborted, Sweeps: 9})
	if after := scrape(t, serve(t, r).URL()); !maps.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	r.Event(roster.Event{Kind: roster.Progress, Norm: roster.Number(math.NaN())})
	if v, ok := scrape(t, serve(t, r).URL())["jacobi_norm"]; ok {
		t.Errorf("jacobi_norm %s of a norm that is not known", v)
	}
	if empty := scrape(t, serve(t, NewRun()).URL()); len(empty) > 0 {
		t.Errorf("before the run: %v", empty)
	}
}

// Complete closes with the final message of the last rank, each counted once.
func TestComplete(t *testing.T) {
	r := full(t)
	for i, rank := range []int{0, 0, 1} {
		select {
		case <-r.Complete():
			t.Fatalf("complete after %d messages", i)
		default:
		}
		r.Event(event(t, rank, stats.Rank{Final: true}))
	}
	select {
	case <-r.Complete():
	default:
		t.Error("not complete after the final messages of all ranks")
	}
}

// A port in use is an error that names the key, and Close frees the port.
func TestListen(t *testing.T) {
	s := serve(t, full(t))
	address := s.listener.Addr().String()
	_, err := Listen(address, NewRun())
	want := fmt.Sprintf("metrics.listen %q: bind: address already in use", address)
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	must(t, s.Close())
	again, err := Listen(address, NewRun())
	must(t, err)
	must(t, again.Close())
}

// The server reads metrics to those who ask for them, and does nothing else.
func TestRequests(t *testing.T) {
	s := serve(t, full(t))
	if h := s.http; h.ReadHeaderTimeout <= 0 || h.ReadTimeout <= 0 || h.WriteTimeout <= 0 || h.IdleTimeout <= 0 {
		t.Errorf("a timeout is missing: %+v", h)
	}
	root := strings.TrimSuffix(s.URL(), Path)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 200}, {"GET", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"POST", "/metrics", 405},
		{"GET", "/other", 404}, {"GET", "/metrics/..%2f", 404},
	} {
		q, err := http.NewRequest(c.method, root+c.path, nil)
		must(t, err)
		answer, err := http.DefaultClient.Do(q)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, answer.StatusCode, c.want)
		}
	}
}

// Linger ends with the first scrape after the end, or after its time if nobody scrapes. An earlier scrape does not
// count.
func TestLinger(t *testing.T) {
	s := serve(t, full(t))
	scrape(t, s.URL())
	begin := time.Now()
	s.Linger(t.Context(), 20*time.Millisecond, func(string) {})
	if took := time.Since(begin); took < 20*time.Millisecond {
		t.Errorf("it lingered for %v", took)
	}
	scrape(t, s.URL())
	late, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s.Linger(late, time.Hour, func(string) {})
	if late.Err() != nil {
		t.Error("the server lingers after a scrape")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A node has the metrics of its ranks, under the names of a run, and tells runs apart.
func TestNode(t *testing.T) {
	n := NewNode()
	s, err := ListenNode("127.0.0.1:0", n)
	must(t, err)
	defer s.Close()
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
	golden(t, "node.txt", read(t, s.URL()))
	lint(t, n)
}

// The values of a run that has ended stay for a minute, with what still arrives. A later run of the same id keeps its
// own.
func TestNodeAfterARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNode()
		want := func(want map[string]int) {
			t.Helper()
			got := map[string]int{}
			for id, r := range n.runs {
				got[id] = r.ranks[0].Sweeps
			}
			if !maps.Equal(got, want) {
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
		want(map[string]int{"a": 5, "b": 2})
		begin("b", 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want(map[string]int{"b": 3})
		if gone.Load() != 2 {
			t.Errorf("%d runs are gone, want 2", gone.Load())
		}
	})
}
