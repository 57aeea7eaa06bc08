package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"jacobi/internal/awake"
)

// errLauncherGone is how the far side ends when its orders do. It is no cause: whoever hears of it ended them, or
// knows what did.
var errLauncherGone = errors.New("the launcher is gone")

// Serve is the far side of a wire: it starts ranks on this machine as orders say and tells what becomes of them,
// until all have ended. When orders end or fall silent, tell fails or ctx ends, it kills the ranks and says why. A
// launcher that has suspended its ranks may be silent for longer. prepare may be nil. tell is called by one
// goroutine; it may block.
func Serve(ctx context.Context, orders <-chan Order, tell func(News) error, prepare Prepare) error {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &announcer{ctx: ctx, news: make(chan News), answer: make(chan News, 2), told: make(chan struct{}, maxSlots)}
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
		cancel(err) // nobody waits for the announcer from here on
		if starting {
			<-started
		}
		return errors.Join(err, local.Close())
	}
	var refused error
	want, told := -1, 0 // what has to be told before it ends: the start and the end of each rank, or a refusal
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
				default: // the launcher does not listen, and waits no longer than it said
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

// announcer tells news, and signs of life between them.
type announcer struct {
	ctx    context.Context
	news   chan News     // of ranks
	answer chan News     // to orders
	told   chan struct{} // one for each start, end of a rank, and refusal that was told; never full
}

// run returns when ctx ends or tell fails.
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

// sink returns what turns into news. It waits for nobody once ctx has ended.
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
