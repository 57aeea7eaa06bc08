package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/vbauerster/mpb/v8"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
	"jacobi/internal/run/launch"
)

// The text beside the bar fits, and has the most that does.
func TestBesideBar(t *testing.T) {
	e := at(500, 10*time.Second)
	for _, c := range []struct {
		width         int
		lagging, want string
	}{
		{100, "", "500 of 1000 sweeps, norm 7.2100e-02 to 1e-08, 5.214 GLUP/s, about 10 s left"},
		{75, "", "500 of 1000 sweeps, norm 7.2100e-02 to 1e-08, 5.214 GLUP/s, about 10 s left"},
		{74, "", "500 of 1000 sweeps, norm 7.2100e-02, 5.214 GLUP/s, about 10 s left"},
		{65, "", "500 of 1000 sweeps, norm 7.2100e-02, about 10 s left"},
		{40, "", "500 of 1000 sweeps, about 10 s left"},
		{20, "", "500 of 1000 sweeps"},
		{17, "", "500/1000"},
		{7, "", ""},
		{100, "rank 3 lags",
			"500 of 1000 sweeps, norm 7.2100e-02 to 1e-08, 5.214 GLUP/s, about 10 s left, rank 3 lags"},
		{65, "rank 3 lags", "500 of 1000 sweeps, norm 7.2100e-02, about 10 s left, rank 3 lags"},
		{31, "rank 3 lags", "500 of 1000 sweeps, rank 3 lags"},
		{24, "rank 3 lags", "500/1000, rank 3 lags"},
		{20, "rank 3 lags", "500 of 1000 sweeps"},
	} {
		if got := besideBar(e, 1e-8, c.lagging, c.width); got != c.want {
			t.Errorf("%d columns, %q: %q, want %q", c.width, c.lagging, got, c.want)
		}
	}
	const want = "500 of 1000 sweeps, norm 7.2100e-02, 5.214 GLUP/s, about 10 s left"
	if got := besideBar(e, 0, "", 100); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line of the bar begins in the first column also where the terminal has echoed a key, as in ^C.
func TestBarBeginsInTheFirstColumn(t *testing.T) {
	var terminal bytes.Buffer
	b := newBar(&terminal, func() string { return percentOf(0.5) }, func(int) string { return " now" },
		mpb.WithAutoRefresh())
	b.fill(0.5)
	b.bar.Abort(false)
	b.container.Wait()
	if got := terminal.String(); !strings.HasPrefix(got, "\r 50% [") || !strings.HasSuffix(got, "]  now\n") {
		t.Errorf("%q", got)
	}
}

// The bar names the ranks for which the others wait, as long as they do.
func TestBarNamesLaggingRanks(t *testing.T) {
	var terminal bytes.Buffer
	b := newRunBar(&terminal, configs.Solver{MaxIterations: 1000}, mpb.WithAutoRefresh())
	s := newScreen(&terminal, &terminal, look{tag: launch.TagRank})
	s.show(b.bar)
	p := &barProgress{screen: s, bar: b, ranks: make([]*stats.Rank, 4)}
	defer p.Close()
	tell := func(rank int, wait float64) {
		data, err := json.Marshal(stats.Rank{Recent: stats.Recent{HaloWait: &wait}})
		if err != nil {
			t.Fatal(err)
		}
		p.Event(roster.Event{Kind: roster.Stats, Rank: rank, Report: data})
	}
	for _, c := range []struct {
		rank int
		wait float64
		want string
	}{
		{0, 0.5, ""}, {1, 0.5, ""}, {2, 0, "rank 2 lags"}, {3, 0.6, "rank 2 lags"}, {0, 0.1, "ranks 0, 2 lag"},
		{0, 0.5, "rank 2 lags"}, {2, 0.5, ""}, {4, 0, ""}, {-1, 0, ""},
	} {
		tell(c.rank, c.wait)
		if got := *b.lagging.Load(); got != c.want {
			t.Errorf("rank %d waits %g: %q, want %q", c.rank, c.wait, got, c.want)
		}
	}
}
