package view

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
)

// rowsOf returns the rows at of the frame of a window of a mesh of 9 x 9 points, each with its row's number.
func rowsOf(w Window, sample uint64, at ...int) Rows {
	r := Rows{Window: w, Viewer: "me", Sample: sample, Sweeps: 10 * int(sample), At: at, Bytes: 8}
	for _, y := range at {
		for range w.Cols {
			r.Values = binary.LittleEndian.AppendUint64(r.Values, math.Float64bits(float64(y)))
		}
	}
	return r
}

// Rows of one sample make a frame, in any order and with duplicates. Rows of an older one, and of other viewers and
// windows, do not matter.
func TestRowsMakeFrames(t *testing.T) {
	w := Window{X1: 9, Y1: 9, Cols: 3, Rows: 4}
	other := Window{X1: 5, Y1: 9, Cols: 3, Rows: 4}
	l := NewLive(NewBoard())
	l.about([]byte(`{"run": {"nx": 9, "ny": 9}, "scale": "linear"}`))
	if f, _, err := l.newer(w, 0); f != nil || err != nil {
		t.Fatal(f, err)
	}
	foreign := rowsOf(w, 2, 3)
	foreign.Viewer = "you"
	for _, r := range []Rows{rowsOf(w, 2, 3, 0), rowsOf(w, 1, 1, 2), rowsOf(w, 2, 1), rowsOf(w, 2, 1), foreign,
		rowsOf(other, 2, 2)} {
		if r.Viewer == "me" {
			r.Viewer = l.id
		}
		l.rows(r.Encode())
	}
	if f, _, _ := l.newer(w, 0); f != nil {
		t.Fatalf("a frame without row 2: %+v", f)
	}
	last := rowsOf(w, 2, 2)
	last.Viewer = l.id
	l.rows(last.Encode())
	f, _, err := l.newer(w, 0)
	want := []float64{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}
	if err != nil || f == nil || f.Sweeps != 20 || !slices.Equal(f.Values, want) {
		t.Fatalf("%+v, %v, want sweep 20 and %v", f, err, want)
	}
	if f, _, _ := l.newer(w, f.Number); f != nil {
		t.Errorf("another frame: %+v", f)
	}
}

// finished is the event of a run of 5 x 3 points whose report has these files.
func finished(t *testing.T, files ...string) roster.Event {
	t.Helper()
	text := report(t, func(r *output.Report) {
		r.Files = nil
		for _, name := range files {
			r.Files = append(r.Files, output.FileReport{Name: name})
		}
	})
	return roster.Event{Kind: roster.Finished, Report: json.RawMessage(text)}
}

// A page that has no frame when the run is over gets the last one from the file of the field.
func TestLastFrameOfFiles(t *testing.T) {
	dir := write(t, map[string]string{"field.npy": field("field.npy", 5, 3)})
	w := Window{X1: 5, Y1: 3, Cols: 5, Rows: 3}
	for _, known := range []bool{false, true} {
		l := NewLive(NewBoard())
		defer l.Close()
		first := uint64(0)
		if known { // and the page has a frame of an earlier sweep
			l.about([]byte(`{"run": {"nx": 5, "ny": 3}, "scale": "linear"}`))
			if _, _, err := l.newer(w, 0); err != nil {
				t.Fatal(err)
			}
			r := rowsOf(w, 0, 0, 1, 2)
			r.Viewer = l.id
			l.rows(r.Encode())
			f, err := l.Frame(t.Context(), w, 0)
			if err != nil || f.Sweeps != 0 {
				t.Fatalf("%+v, %v", f, err)
			}
			first = f.Number
		}
		l.event(finished(t, "history.csv", "field.npy"))
		l.EndIn(dir)
		f, err := l.Frame(t.Context(), w, first)
		if err != nil || f.Sweeps != 2 || f.Number <= first || f.Values[14] != 2.004 {
			t.Fatalf("%+v, %v; want the field after sweep 2", f, err)
		}
		if f, err := l.Frame(t.Context(), w, f.Number); !errors.Is(err, io.EOF) {
			t.Errorf("%+v, %v, want EOF", f, err)
		}
	}
}

// The last frame and the outlines of a run whose material has an end are those of its problem, whether or not rank 0
// has told of the outlines.
func TestOutsideAtTheEnd(t *testing.T) {
	dir := write(t, map[string]string{"field.npy": field("field.npy", 5, 3)})
	event := roster.Event{Kind: roster.Finished, Report: json.RawMessage(configured(t, "ix < 2 ? 0 : 1",
		func(*output.Report) {}))}
	for told, want := range map[string]string{"": "[[1.5,-0.5,1.5,2.5]]", `, "outlines": [[1,2,3,4]]`: "[[1,2,3,4]]"} {
		b := NewBoard()
		l := NewLive(b)
		defer l.Close()
		l.about([]byte(`{"run": {"nx": 5, "ny": 3` + told + `}, "scale": "linear"}`))
		l.event(event)
		l.EndIn(dir)
		if got := string(b.topics[TopicRun].message); !strings.Contains(got, `"outlines":`+want) {
			t.Errorf("%s, want outlines %s", got, want)
		}
		f, err := l.Frame(t.Context(), Window{X1: 5, Y1: 3, Cols: 5, Rows: 3}, 0)
		must(t, err)
		for i, v := range f.Values {
			if math.IsNaN(v) != (i%5 < 2) {
				t.Errorf("%v at column %d, row %d", v, i%5, i/5)
			}
		}
	}
}

// Without a field in a file, the page of a run that is over says so.
func TestNoFieldAtTheEnd(t *testing.T) {
	b := NewBoard()
	l := NewLive(b)
	l.event(finished(t, "history.csv"))
	l.EndIn(t.TempDir())
	const want = `"no_field":"the last frame came to no page, and the run has written no field"`
	if got := string(b.topics[TopicRun].message); !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	if f, err := l.Frame(t.Context(), Window{X1: 5, Y1: 3, Cols: 5, Rows: 3}, 0); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v, want EOF", f, err)
	}
}

// A viewer asks for a window as long as a page waits for it, however slow the ranks are, and no longer.
func TestSlowRanksAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Window{X1: 9, Y1: 9, Cols: 3, Rows: 4}
		l := NewLive(NewBoard())
		l.about([]byte(`{"run": {"nx": 9, "ny": 9}, "scale": "linear"}`))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = l.Frame(ctx, w, 0) }()
		time.Sleep(2 * keepWindow)
		if a, _ := l.question(time.Now()); !slices.Equal(a.Windows, []Window{w}) {
			t.Errorf("windows %+v are asked for while a page waits, want %+v", a.Windows, w)
		}
		cancel()
		time.Sleep(2 * keepWindow)
		if a, ok := l.question(time.Now()); ok {
			t.Errorf("windows %+v are asked for, and no page waits", a.Windows)
		}
	})
}

// A page that has the last frame of a run goes on with the next start of it, and is told why there is one.
func TestLiveGoesOnWithTheNextStart(t *testing.T) {
	conn := wire.Over(rostertest.Start(t, 0).Dial())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := Window{X1: 9, Y1: 9, Cols: 3, Rows: 4}
	board := NewBoard()
	l := NewLive(board)
	// start attaches l to a run whose ranks give a frame once l asks for it.
	start := func(run string) (end func()) {
		t.Helper()
		publish := func(name string, data []byte) {
			if err := conn.Publish(roster.Subject(run, name), data); err != nil {
				t.Error(err)
			}
		}
		asked, err := conn.Subscribe(roster.Subject(run, AskName), func(m pubsub.Message) {
			a, err := ParseAsk(m.Data, 9, 9)
			if err != nil {
				t.Error(err)
			}
			publish(AboutName, []byte(`{"run": {"nx": 9, "ny": 9, "id": "`+run+`"}, "scale": "linear"}`))
			if slices.Equal(a.Windows, []Window{w}) {
				r := rowsOf(w, 1, 0, 1, 2, 3)
				r.Viewer = a.Viewer
				publish(RowsName, r.Encode())
			}
		})
		must(t, err)
		detach, err := l.Attach(ctx, conn, run)
		must(t, err)
		return func() { detach(); _ = asked.Unsubscribe() }
	}
	frames := make(chan *Frame)
	go func() {
		defer close(frames)
		for after := uint64(0); ; {
			f, err := l.Frame(ctx, w, after)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				return
			}
			after = f.Number
			frames <- f
		}
	}()
	end := start("job-1")
	first := <-frames
	end()
	l.Warn("restart 1 of 1")
	end = start("job-2")
	second := <-frames
	end()
	if first == nil || second == nil || second.Number <= first.Number {
		t.Fatalf("frames %v and %v", first != nil, second != nil)
	}
	if got := string(board.topics[TopicWarnings].message); got != `{"topic":"warnings","data":["restart 1 of 1"]}` {
		t.Errorf("warnings %s", got)
	}
	l.End()
	if f, more := <-frames; more {
		t.Errorf("a frame after the end: %+v", f)
	}
}

// The ranks are asked as soon as they are there: a run may be short.
func TestRanksAreAskedAtOnce(t *testing.T) {
	l := NewLive(NewBoard())
	asks := func() bool {
		select {
		case <-l.ask:
			return true
		default:
			return false
		}
	}
	if asks() {
		t.Error("ranks are asked that are not there")
	}
	l.event(roster.Event{Kind: roster.Started})
	if !asks() {
		t.Error("ranks that have started are not asked")
	}
	l.about([]byte(`{"run": {"nx": 9, "ny": 9}, "scale": "linear"}`))
	if l.event(roster.Event{Kind: roster.Progress, Sweeps: 3}); asks() {
		t.Error("ranks are asked for what is known")
	}
}

// Messages that no rank and no viewer sends are refused.
func TestMessagesThatAreRefused(t *testing.T) {
	w := Window{X1: 9, Y1: 9, Cols: 3, Rows: 4}
	good := rowsOf(w, 1, 0, 3)
	if _, err := ParseRows(good.Encode(), 9, 9); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Rows){
		"a row beyond":      func(r *Rows) { r.At[1] = 4 },
		"a row before":      func(r *Rows) { r.At[0] = -1 },
		"values missing":    func(r *Rows) { r.Values = r.Values[8:] },
		"too many values":   func(r *Rows) { r.Values = append(r.Values, r.Values...) },
		"another type":      func(r *Rows) { r.Bytes = 2 },
		"window beyond":     func(r *Rows) { r.X1 = 10 },
		"too many columns":  func(r *Rows) { r.Cols = 10 },
		"a negative cost":   func(r *Rows) { r.Cost = -1 },
		"a negative sweep":  func(r *Rows) { r.Sweeps = -1 },
		"more rows than it": func(r *Rows) { r.At = []int{0, 1, 2, 3, 0}; r.Values = make([]byte, 5*24) },
	} {
		r := rowsOf(w, 1, 0, 3)
		change(&r)
		if _, err := ParseRows(r.Encode(), 9, 9); err == nil {
			t.Errorf("%s: rows are accepted", name)
		}
	}
	whole := good.Encode()
	for _, b := range [][]byte{nil, whole[:3], whole[:20], {255, 255, 255, 255, 1}} {
		if _, err := ParseRows(b, 9, 9); err == nil {
			t.Errorf("%d bytes are accepted", len(b))
		}
	}
	for _, text := range []string{"", "{}", `{"viewer":"` + strings.Repeat("x", 65) + `"}`,
		`{"viewer":"a","cost":-1}`, `{"viewer":"a","windows":[{"x1":10,"y1":9,"cols":1,"rows":1}]}`,
		`{"viewer":"a","windows":[{},{},{},{},{}]}`, `{"viewer":"` + strings.Repeat(" ", maxAsk) + `a"}`} {
		if a, err := ParseAsk([]byte(text), 9, 9); err == nil {
			t.Errorf("%.40s: %+v is accepted", text, a)
		}
	}
	a, err := ParseAsk([]byte(`{"viewer":"a","windows":[{"x1":9,"y1":9,"cols":5000,"rows":5000}]}`), 9, 9)
	if err != nil || a.Windows[0].Cols != 9 || a.Windows[0].Rows != 9 {
		t.Errorf("%+v, %v, want 9 x 9 cells", a, err)
	}
}

// The page says why a run failed: the first cause, also where a consequence of it arrives before.
func TestFailedRuns(t *testing.T) {
	l := NewLive(NewBoard())
	for _, c := range []struct {
		e    roster.Event
		want string
	}{
		{roster.Event{Kind: roster.Progress, Sweeps: 3, Elapsed: time.Second}, ""},
		{roster.Event{Kind: roster.Aborted, Rank: 1, Host: "b", Text: "lost", Consequence: true}, "rank 1 on b: lost"},
		{roster.Event{Kind: roster.Aborted, Rank: 0, Host: "a", Text: "no\x1bdisk"}, `rank 0 on a: no\x1bdisk`},
		{roster.Event{Kind: roster.Aborted, Rank: 2, Host: "c", Text: "late"}, `rank 0 on a: no\x1bdisk`},
	} {
		l.event(c.e)
		if got := l.status.progress.Text; got != c.want || l.Over() != (c.want != "") {
			t.Errorf("after %+v: %q, want %q", c.e, got, c.want)
		}
	}
	l.Fail("the launcher knows better")
	var shown struct{ Data Progress }
	must(t, json.Unmarshal(l.board.topics[TopicProgress].message, &shown))
	if p := shown.Data; p.State != Failed || p.Text != "the launcher knows better" || p.Sweeps != 3 {
		t.Errorf("%+v", p)
	}
}
