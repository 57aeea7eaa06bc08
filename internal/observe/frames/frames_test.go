package frames

import (
	"testing"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/view"
)

// Rank 0 asks for samples while a viewer wants some, no more often than their cost allows.
func TestSamplesForViewersAreBounded(t *testing.T) {
	comm, err := roster.Join(t.Context(), nil, roster.Member{Identity: roster.Identity{RunID: "test", Size: 1,
		LocalSize: 1}}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer comm.Close()
	v, err := Open(Options{Comm: comm})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	w := view.Window{X1: 66, Y1: 98, Cols: 66, Rows: 98}
	if v.wanted() || v.keep(view.Ask{Viewer: "a"}, now) != true || v.wanted() {
		t.Error("a sample is wanted although nobody wants a window")
	}
	if v.keep(view.Ask{Viewer: "a", Windows: []view.Window{w}}, now); !v.wanted() {
		t.Error("no sample is wanted")
	}
	const cost = 10 * time.Millisecond
	v.charge(cost)
	if v.wanted() {
		t.Error("a sample is wanted right after another one")
	}
	share := func() float64 { return cost.Seconds() / time.Until(time.Unix(0, v.next.Load())).Seconds() }
	if s := share(); s > viewShare*1.1 {
		t.Errorf("samples take %g of the time, want at most %g", s, viewShare)
	}
	v.keep(view.Ask{Viewer: "a", Windows: []view.Window{w}, Cost: 0.05}, now) // another rank is slower
	v.charge(cost)
	if s := share(); s > viewShare*1.1/5 {
		t.Errorf("samples take %g of the time of another rank", 5*s)
	}
	v.next.Store(now.UnixNano())
	v.asks["a"] = viewerAsk{v.asks["a"].Ask, now.Add(-1)} // it has left
	if v.wanted() || v.next.Load() != 0 {
		t.Error("a sample is wanted for a viewer that has left")
	}
	for cost, want := range map[time.Duration]time.Duration{0: minViewInterval, time.Millisecond: minViewInterval,
		10 * time.Millisecond: 1250 * time.Millisecond, time.Hour: maxViewInterval} {
		if got := viewInterval(cost); got != want {
			t.Errorf("samples of %v are %v apart, want %v", cost, got, want)
		}
	}
	for i := range 2 * maxViewers {
		v.keep(view.Ask{Viewer: string(rune('a' + i)), Windows: []view.Window{w, w}}, now)
	}
	n := 0
	for _, a := range v.current() {
		n += len(a.Windows)
	}
	if len(v.asks) != maxViewers || n != maxViewWindows {
		t.Errorf("%d viewers with %d windows, want %d and %d", len(v.asks), n, maxViewers, maxViewWindows)
	}
}
