package roster

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

func TestProgress(t *testing.T) {
	const s, h = time.Second, time.Hour
	leaves := func(d time.Duration) Event { return Event{Sweeps: 10, MaxSweeps: 80, End: 80, Left: d} }
	for _, c := range []struct {
		e    Event
		want string
	}{
		{Event{Sweeps: 250, MaxSweeps: 1000, End: 1000, Left: 30 * s}, "250 of 1000 sweeps (25%), about 30 s left"},
		{Event{Sweeps: 250, MaxSweeps: 1e8, End: 126487, Left: 400 * time.Millisecond},
			"250 of about 126000 sweeps (0%), about 1 s left"},
		{Event{Sweeps: 7, MaxSweeps: 1e8}, "7 of at most 100000000 sweeps"},
		{Event{Sweeps: 1000, MaxSweeps: 1e8, End: 1000}, "1000 of 1000 sweeps (100%)"},
		{leaves(59600 * time.Millisecond), "10 of 80 sweeps (12%), about 60 s left"},
		{leaves(217 * s), "10 of 80 sweeps (12%), about 3m40s left"},
		{leaves(1499 * s), "10 of 80 sweeps (12%), about 25m left"},
		{leaves(h + 48*time.Minute + 51*s), "10 of 80 sweeps (12%), about 1h50m left"},
		{leaves(70 * h), "10 of 80 sweeps (12%), about 3 days left"},
		{leaves(1<<63 - 1), "10 of 80 sweeps (12%), about 292 years left"},
	} {
		c.e.Norm, c.e.GLUPs = 0.0721, 5.25
		goal, left, found := strings.Cut(c.want, ",")
		want := goal + ", norm 7.2100e-02, 5.250 GLUP/s"
		if found {
			want += "," + left
		}
		if got := c.e.Progress(); got != want {
			t.Errorf("%+v: %s, want %s", c.e, got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	s := rostertest.Start(t, 0)
	comms := joined(t, plain(s), 2)
	flushAll(t, comms)
	got := make(chan Event, 10)
	stop, err := WatchEvents(t.Context(), wire.Over(s.Dial()), "test", func(e Event) { got <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	// A message on another rank's subject, and one that is no event, are dropped.
	if err := comms[1].Conn().Publish(eventSubject("test", "0"), []byte(`{"kind":"finished","rank":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := comms[1].Conn().Publish(eventSubject("test", "1"), []byte(`nonsense`)); err != nil {
		t.Fatal(err)
	}
	sent := Event{Kind: Progress, Rank: 1, Host: "host1", Sweeps: 100, MaxSweeps: 1000, Norm: 0.25, GLUPs: 3,
		Elapsed: time.Second, Report: []byte(`{"a":1}`)}
	if err := comms[1].Publish(sent); err != nil {
		t.Fatal(err)
	}
	e := <-got
	if fmt.Sprint(e) != fmt.Sprint(sent) {
		t.Errorf("got %+v, want %+v", e, sent)
	}
	if err := comms[1].Publish(Event{Kind: Finished, Norm: Number(math.NaN()),
		Text: strings.Repeat("x", 10*maxText)}); err != nil {
		t.Fatal(err)
	}
	if e = <-got; !math.IsNaN(float64(e.Norm)) || len(e.Text) > maxText+10 {
		t.Errorf("norm %v, %d bytes of text", e.Norm, len(e.Text))
	}
	if err := alone(t)[0].Publish(sent); err != nil {
		t.Errorf("without a server: %v", err)
	}
}

// WatchRanks has the events of the ranks that it is given alone.
func TestWatchRanks(t *testing.T) {
	s := rostertest.Start(t, 0)
	conn := wire.Over(s.Dial())
	got := make(chan int, 10)
	stop, err := WatchRanks(t.Context(), conn, "test", []int{1, 3}, func(e Event) { got <- e.Rank })
	if err != nil {
		t.Fatal(err)
	}
	send := func(rank int) {
		t.Helper()
		event := fmt.Appendf(nil, `{"rank":%d}`, rank)
		if err := conn.Publish(eventSubject("test", fmt.Sprint(rank)), event); err != nil {
			t.Fatal(err)
		}
	}
	for _, rank := range []int{0, 1, 2, 10} {
		send(rank)
	}
	if rank := <-got; rank != 1 {
		t.Errorf("an event of rank %d, want 1", rank)
	}
	send(3)
	if rank := <-got; rank != 3 {
		t.Errorf("an event of rank %d, want 3", rank)
	}
	stop()
	send(1)
	if err := flush(t.Context(), conn, flushTimeout); err != nil || len(got) > 0 {
		t.Errorf("%d events after stop, %v", len(got), err)
	}
}
