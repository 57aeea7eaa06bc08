package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// send sends orders, and an empty Order as a sign of life every beatInterval. It may block in wire.Send until the wire
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

// Start implements Host.
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

// Signal implements Host.
func (r *Remote) Signal(sig syscall.Signal) {
	select {
	case r.orders <- Order{Signal: sig}:
	default:
	}
}

// Suspend implements Host.
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
