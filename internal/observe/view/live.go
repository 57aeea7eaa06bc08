package view

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

const (
	askInterval   = time.Second
	flushInterval = 200 * time.Millisecond // between changes of the board
	keepWindow    = 5 * time.Second        // a window that no page wants is no longer asked for
)

// Live shows a run that goes on: it is the Source of its frames, and fills the Board. It asks ranks for frames only
// while pages want them. Its methods may be called by several goroutines.
type Live struct {
	board *Board
	id    string // of this viewer

	mu      sync.Mutex
	run     Run // NX is 0 before rank 0 has told of it
	scale   string
	windows map[Window]*watched
	number  uint64 // of the newest frame
	over    bool   // the ranks give no other frame
	files   *Files // has the field of a run that is over; nil if there is none
	final   uint64 // number of the frames from files, above all others
	changed chan struct{}
	ask     chan struct{} // a token: something new is wanted
	status  runStatus
}

// watched is a window that a page wants.
type watched struct {
	gathering
	newest *Frame // nil before the first
	wanted time.Time
	cost   float64
}

// NewLive returns a Live that shows nothing yet.
func NewLive(board *Board) *Live {
	l := &Live{board: board, id: rand.Text(), windows: map[Window]*watched{}, changed: make(chan struct{}),
		ask: make(chan struct{}, 1)}
	l.status.reset()
	l.flush()
	return l
}

// Attach shows the run with this id until detach is called, from its beginning or from now on.
func (l *Live) Attach(ctx context.Context, conn pubsub.Conn, runID string) (detach func(), err error) {
	l.mu.Lock()
	l.run, l.over, l.files = Run{}, false, nil
	clear(l.windows)
	l.status.reset()
	l.mu.Unlock()
	var subs []pubsub.Subscription
	undo := func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // fails only on a closed connection
		}
	}
	subscribe := func(name string, handle func(data []byte)) {
		if err != nil {
			return
		}
		var s pubsub.Subscription
		s, err = conn.Subscribe(roster.Subject(runID, name), func(m pubsub.Message) { handle(m.Data) })
		if err == nil {
			subs = append(subs, s)
			err = s.SetPendingLimits(-1, maxPending)
		}
	}
	subscribe(RowsName, l.rows)
	subscribe(AboutName, l.about)
	if err != nil {
		undo()
		return nil, fmt.Errorf("view of run %s: %w", runID, err)
	}
	unwatch, err := roster.WatchEvents(ctx, conn, runID, l.event)
	if err != nil {
		undo()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { l.follow(ctx, conn, roster.Subject(runID, AskName)) })
	return func() {
		cancel()
		ended.Wait()
		unwatch()
		undo()
		l.flush()
	}, nil
}

// maxPending bounds the messages of ranks that wait here, in bytes. Further ones are dropped, and frames with them.
const maxPending = 64 << 20

// follow asks the ranks until ctx ends.
func (l *Live) follow(ctx context.Context, conn pubsub.Conn, subject string) {
	again, flush := time.NewTicker(askInterval), time.NewTicker(flushInterval)
	defer again.Stop()
	defer flush.Stop()
	for {
		if a, ok := l.question(time.Now()); ok {
			if data, err := json.Marshal(a); err == nil {
				_ = conn.Publish(subject, data) // it is repeated
			}
		}
		for asked := false; !asked; {
			select {
			case <-flush.C:
				l.flush()
			case <-again.C:
				asked = true
			case <-l.ask:
				asked = true
			case <-ctx.Done():
				return
			}
		}
	}
}

// question returns what to ask the ranks for; ok is false if there is nothing.
func (l *Live) question(now time.Time) (a Ask, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return a, false
	}
	a.Viewer = l.id
	for w, k := range l.windows {
		if now.Sub(k.wanted) > keepWindow {
			delete(l.windows, w)
			continue
		}
		a.Windows = append(a.Windows, w)
		a.Cost = max(a.Cost, k.cost)
	}
	slices.SortFunc(a.Windows, func(v, w Window) int { return l.windows[w].wanted.Compare(l.windows[v].wanted) })
	a.Windows = a.Windows[:min(len(a.Windows), maxWindows)]
	return a, len(a.Windows) > 0 || l.run.NX == 0
}

// Frame implements Source.
func (l *Live) Frame(ctx context.Context, w Window, after uint64) (*Frame, error) {
	for {
		f, changed, err := l.newer(w, after)
		if errors.Is(err, io.EOF) {
			return l.fromFile(ctx, w, after)
		}
		if f != nil || err != nil {
			return f, err
		}
		select {
		case <-changed:
		case <-time.After(askInterval): // it is still wanted, however long the ranks take
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fromFile returns the last frame of a run that is over, where the ranks have given none for w.
func (l *Live) fromFile(ctx context.Context, w Window, after uint64) (*Frame, error) {
	l.mu.Lock()
	files, final := l.files, l.final
	if shown, err := w.In(l.run.NX, l.run.NY); err == nil {
		w = shown
	}
	if k := l.windows[w]; k != nil && k.newest != nil && files != nil && k.newest.Sweeps == files.sweep {
		files = nil // the page has it
	}
	l.mu.Unlock()
	if files == nil || after >= final {
		return nil, io.EOF
	}
	f, err := files.Frame(ctx, w, 0)
	if err == nil {
		f.Number = final
	}
	return f, err
}

// newer returns the newest frame of w if its number is above after; else changed, which is closed at the next change.
func (l *Live) newer(w Window, after uint64) (f *Frame, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.NX == 0 {
		if l.over {
			return nil, nil, io.EOF
		}
		return nil, l.changed, nil
	}
	if w, err = w.In(l.run.NX, l.run.NY); err != nil {
		return nil, nil, err
	}
	k := l.windows[w]
	if k == nil {
		if l.over {
			return nil, nil, io.EOF
		}
		k = &watched{}
		l.windows[w] = k
		l.askNow()
	}
	k.wanted = time.Now()
	switch {
	case k.newest != nil && k.newest.Number > after:
		return k.newest, nil, nil
	case l.over:
		return nil, nil, io.EOF
	}
	return nil, l.changed, nil
}

// askNow lets follow ask the ranks before the next askInterval.
func (l *Live) askNow() {
	select {
	case l.ask <- struct{}{}:
	default: // it is about to
	}
}

// change wakes those who wait for frames. l.mu is held.
func (l *Live) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// rows handles a message with rows of a frame.
func (l *Live) rows(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.NX == 0 {
		return
	}
	r, err := ParseRows(data, l.run.NX, l.run.NY)
	if err != nil || r.Viewer != l.id {
		return
	}
	k := l.windows[r.Window]
	if k == nil {
		return
	}
	k.cost = max(r.Cost, k.cost*0.9)
	f := k.add(r)
	if f == nil {
		return
	}
	l.number++
	f.Number, f.Scale = l.number, l.scale
	f.encode() // once for all pages
	k.newest = f
	l.change()
}

// about handles the description of the run that rank 0 publishes.
func (l *Live) about(data []byte) {
	var a About
	if len(data) > maxAbout || json.Unmarshal(data, &a) != nil || a.Run.NX < 1 || a.Run.NY < 1 ||
		len(a.Points) > maxPoints+1 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.run.NX == 0
	if !first && (a.Run.NX != l.run.NX || a.Run.NY != l.run.NY) {
		return
	}
	l.run, l.scale = a.Run, a.Scale
	l.status.about(a)
	if first {
		l.change()
	}
}

// event handles an event of a rank.
func (l *Live) event(e roster.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.event(e)
	if l.run.NX == 0 { // the question at the beginning came before the ranks
		l.askNow()
	}
}

// Warn adds a warning.
func (l *Live) Warn(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.warn(text)
}

// Fail says why the run has no results.
func (l *Live) Fail(why string) {
	l.mu.Lock()
	l.status.fail(why)
	l.mu.Unlock()
	l.End()
}

// EndIn is End of a run that has left its files in dir: from there come the last frames that pages lack.
func (l *Live) EndIn(dir string) {
	l.mu.Lock()
	f := &Files{sweep: l.status.progress.Sweeps, scale: cmp.Or(l.scale, output.ScaleAuto)}
	err := errNoFile
	if l.status.report != nil {
		err = f.open(dir, nil, l.status.report)
	}
	if err == nil {
		ctx := context.Background()
		if err := f.know(ctx, l.status.report); err != nil {
			l.status.warn(unknown(err))
		}
		l.status.outline(ctx, f.problem)
		l.number++
		l.files, l.final = f, l.number
	} else if l.status.run != nil {
		l.status.noField(err)
	}
	l.mu.Unlock()
	l.End()
}

// Close closes the field of a run that is over. Pages get no frames any more.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files != nil {
		_ = l.files.Close() // nothing was written
		l.files = nil
	}
}

// End says that the ranks give no more frames.
func (l *Live) End() {
	l.mu.Lock()
	l.over = true
	l.change()
	l.mu.Unlock()
	l.flush()
}

// flush puts what has changed on the board.
func (l *Live) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.flush(l.board)
}

// Over reports whether the run has ended.
func (l *Live) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status.over()
}

// ErrNoAnswer reports a run that is not there, or cannot be read.
var ErrNoAnswer = errors.New("rank 0 of the run does not answer")

// Await returns once rank 0 has told of its run, and ErrNoAnswer if it has not after so long.
func (l *Live) Await(ctx context.Context, limit time.Duration) error {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		l.mu.Lock()
		known, changed := l.run.NX > 0, l.changed
		l.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-changed:
		case <-end.C:
			return ErrNoAnswer
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// finite returns f, or nil if it is no number.
func finite(f float64) *roster.Number {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return new(roster.Number(f))
}
