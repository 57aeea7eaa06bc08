package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"jacobi/internal/base/awake"
)

// errLauncherGone is the error of a far end whose orders have ended. It is never the cause of a failure: the launcher
// closed the wire on purpose, or knows why the wire broke.
var errLauncherGone = errors.New("the launcher is gone")

// Serve is the far end of a wire. It starts ranks on this machine as orders say, and passes their news to tell until
// all have ended. It kills the ranks and returns the reason if orders ends or falls silent for silenceLimit, if tell
// fails, or if ctx ends. After SIGSTOP the limit on silence is suspendLimit. prepare may be nil. One goroutine calls
// tell, which may block.
func Serve(ctx context.Context, orders <-chan Order, tell func(News) error, prepare Prepare) error {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &announcer{ctx: ctx, news: make(chan News), answer: make(chan News, 2), told: make(chan struct{}, MaxSlots)}
	go func() { cancel(a.run(tell)) }()
	limit, suspended := silenceLimit, atomic.Bool{}
	silence := awake.Of(ctx).AfterFunc(limit, func() {
		if suspended.Load() {
			cancel(fmt.Errorf("the launcher: it was stopped for more than %v", suspendLimit))
			return
		}
		cancel(fmt.Errorf("the launcher: %s", silent(silenceLimit)))
	})
	defer silence.Stop()

	local := &Local{Prepare: prepare}
	started := make(chan error, 1)
	begun, starting := false, false
	end := func(err error) error {
		cancel(err) // ends the announcer, and unblocks the ranks' output
		if starting {
			<-started
		}
		return errors.Join(err, local.Close())
	}
	var refused error
	want, told := -1, 0 // news to tell before the end: Started and one Exit for each rank, or Refused
	for told != want {
		select {
		case o, ok := <-orders:
			if !ok {
				return end(errLauncherGone)
			}
			switch o.Signal {
			case syscall.SIGSTOP:
				limit = suspendLimit
			case syscall.SIGCONT:
				limit = silenceLimit
			}
			suspended.Store(limit == suspendLimit)
			silence.Reset(limit)
			if o.Spec != nil && !begun {
				begun, starting = true, true
				go func() { started <- local.Start(ctx, *o.Spec, a.sink()) }()
				want = 1 + len(o.Spec.Ranks)
			}
			if o.Signal != 0 {
				local.Signal(o.Signal)
			}
			if o.Signal == syscall.SIGSTOP {
				select {
				case a.answer <- News{Stopped: true}:
				default: // an answer is pending already; the launcher's wait is bounded
				}
			}
		case refused = <-started:
			starting = false
			if refused == nil {
				a.answer <- News{Started: true}
				continue
			}
			want = 1
			a.answer <- News{Refused: refused.Error()}
		case <-a.told:
			told++
		case <-ctx.Done():
			return end(context.Cause(ctx))
		}
	}
	cancel(nil)
	return errors.Join(refused, local.Close())
}

// announcer passes news to the launcher, and an empty News as a sign of life every beatInterval.
type announcer struct {
	ctx    context.Context
	news   chan News     // from ranks
	answer chan News     // to orders
	told   chan struct{} // receives a token for each Started, Exit and Refused that was told; never full
}

// run returns when ctx ends or tell fails, with the reason.
func (a *announcer) run(tell func(News) error) error {
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	for {
		var n News
		select {
		case n = <-a.news:
		case n = <-a.answer:
		case <-beat.C:
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		}
		if err := tell(n); err != nil {
			return fmt.Errorf("tell the launcher: %w", err)
		}
		if n.Started || n.Exit != nil || n.Refused != "" {
			a.told <- struct{}{}
		}
	}
}

// sink returns a Sink that sends news. It does not block once ctx has ended.
func (a *announcer) sink() Sink {
	say := func(n News) {
		select {
		case a.news <- n:
		case <-a.ctx.Done():
		}
	}
	return Sink{
		Line: func(rank int, s Stream, text []byte) {
			say(News{Line: &Line{Rank: rank, Stream: s, Text: slices.Clone(text)}})
		},
		Exit: func(e Exit) { say(News{Exit: &e}) },
	}
}
