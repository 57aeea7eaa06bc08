package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
)

// startLimit bounds the wait for an answer to the order to start ranks.
const startLimit = time.Minute

// Remote is a Host whose ranks are started by Serve at the other end of a wire.
type Remote struct {
	name     string
	wire     Wire
	patience time.Duration // the host counts as lost after so long a silence

	stopped chan struct{} // holds a token after the other end has said that the ranks are stopped

	orders chan Order // an order that finds it full is dropped: the wire is stuck, and the silence will end the host
	stop   chan struct{}
	once   sync.Once
}

// NewRemote returns the host called name at the other end of wire. Close closes the wire.
func NewRemote(name string, wire Wire) *Remote {
	r := &Remote{
		name: name, wire: wire, patience: silenceLimit,
		stopped: make(chan struct{}, 1), orders: make(chan Order, 16), stop: make(chan struct{}),
	}
	go r.send()
	return r
}

// send sends orders, and an empty Order as a heartbeat every beatInterval. It may block in wire.Send until the wire
// is closed.
func (r *Remote) send() {
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	for {
		var o Order
		select {
		case o = <-r.orders:
		case <-beat.C:
		case <-r.stop:
			return
		}
		if r.wire.Send(o) != nil {
			return // News ends as well
		}
	}
}

func (r *Remote) Start(ctx context.Context, spec Spec, sink Sink) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no answer within %v", startLimit))
	defer cancel()
	r.orders <- Order{Spec: &spec}
	ranks := make([]int, len(spec.Ranks))
	for i, id := range spec.Ranks {
		ranks[i] = id.Rank
	}
	fail := func(err error) error {
		return errors.Join(fmt.Errorf("start %s on %s: %w", roster.FormatRanks(ranks), r.name, err), r.Close())
	}
	silence := awake.Of(ctx).NewTimer(r.patience)
	defer silence.Stop()
	var early []News // news that arrived before Started: ranks may write, and end, before all of them run
	for {
		select {
		case n, ok := <-r.wire.News():
			switch {
			case !ok:
				return fail(errors.New(r.broken()))
			case n.Refused != "":
				return fail(errors.New(n.Refused))
			case n.Started:
				go r.pump(awake.Of(ctx), spec, sink, early)
				return nil
			default:
				early = append(early, n)
			}
			silence.Reset(r.patience)
		case <-silence.C:
			return fail(errors.New(silent(r.patience)))
		case <-ctx.Done():
			return fail(context.Cause(ctx))
		}
	}
}

func silent(limit time.Duration) string { return fmt.Sprintf("nothing was heard of it for %v", limit) }

// broken says why News ended.
func (r *Remote) broken() string {
	if why := r.wire.Reason(); why != "" {
		return why
	}
	return "the connection ended"
}

// pump passes news on to sink until all ranks have ended or the host is lost.
func (r *Remote) pump(clock *awake.Clock, spec Spec, sink Sink, early []News) {
	left := map[int]bool{}
	for _, id := range spec.Ranks {
		left[id.Rank] = true
	}
	lost := func(why string) {
		for rank := range left {
			sink.Exit(Exit{Rank: rank, Lost: why})
		}
	}
	pass := func(n News) {
		if n.Stopped {
			select {
			case r.stopped <- struct{}{}:
			default:
			}
		}
		if l := n.Line; l != nil && left[l.Rank] {
			sink.Line(l.Rank, l.Stream, l.Text)
		}
		if e := n.Exit; e != nil && left[e.Rank] {
			delete(left, e.Rank)
			sink.Exit(*e)
		}
	}
	for _, n := range early {
		pass(n)
	}
	silence := clock.NewTimer(r.patience)
	defer silence.Stop()
	for len(left) > 0 {
		select {
		case n, ok := <-r.wire.News():
			if !ok {
				lost(r.broken())
				return
			}
			silence.Stop() // sink may block for any time on a slow reader of the output
			pass(n)
			silence.Reset(r.patience)
		case <-silence.C:
			lost(silent(r.patience))
			return
		}
	}
}

func (r *Remote) Signal(sig syscall.Signal) {
	select {
	case r.orders <- Order{Signal: sig}:
	default:
	}
}

func (r *Remote) Suspend(ctx context.Context) {
	select {
	case <-r.stopped: // left over from an earlier suspension
	default:
	}
	r.Signal(syscall.SIGSTOP)
	select {
	case <-r.stopped:
	case <-r.stop:
	case <-ctx.Done():
	}
}

// Close implements Host. The other end kills the ranks when its orders end.
func (r *Remote) Close() error {
	var err error
	r.once.Do(func() {
		close(r.stop)
		if err = r.wire.Close(); err != nil {
			err = fmt.Errorf("leave %s: %w", r.name, err)
		}
	})
	return err
}

// Both ends of a wire send something every beatInterval, and each gives the other up after silenceLimit. TCP alone
// would not notice a pulled cable for hours.
const (
	beatInterval = 2 * time.Second
	silenceLimit = 12 * time.Second
	// suspendLimit is how long the far end keeps ranks that the launcher has suspended. A launcher that is killed
	// meanwhile ends its ssh, but not its connection to an agent over NATS.
	suspendLimit = time.Hour
)

// Order is a message of the launcher to the far end, which starts ranks. The zero Order is a heartbeat.
type Order struct {
	Spec   *Spec          `json:"spec,omitempty"` // start these ranks; sent once
	Signal syscall.Signal `json:"signal,omitempty"`
}

// News is a message of the far end to the launcher. The zero News is a heartbeat.
type News struct {
	Started bool   `json:"started,omitempty"` // all ranks run
	Stopped bool   `json:"stopped,omitempty"` // the ranks are stopped, as the order SIGSTOP asked
	Refused string `json:"refused,omitempty"` // why no rank was started
	Line    *Line  `json:"line,omitempty"`
	Exit    *Exit  `json:"exit,omitempty"`
}

// Line is a line of a rank's output.
type Line struct {
	Rank   int    `json:"rank"`
	Stream Stream `json:"stream"`
	Text   []byte `json:"text"`
}

// Wire connects a launcher with one far end. It delivers messages in order.
type Wire interface {
	// Send sends an order. Several goroutines may call it. It may block while the wire is stuck; Close unblocks it.
	Send(Order) error
	// News returns the channel of news. It is closed after the last one.
	News() <-chan News
	// Close closes the wire in bounded time, which ends the orders at the far end. It may be called again.
	Close() error
	// Reason returns, once News is closed, why the wire broke; "" if that is unknown.
	Reason() string
}

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

// announcer passes news to the launcher, and an empty News as a heartbeat every beatInterval.
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
