package halo

import (
	"context"
	"fmt"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/solver"
)

// Recv waits for the neighbour's rows. While none arrive it asks for them, with growing pauses. Calls must not overlap.
func (l *FramedLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	got, err := l.Take(ctx, exchange, len(rows))
	if err != nil {
		return err
	}
	copy(rows, got)
	return nil
}

// Take implements solver.RowLender.
func (l *FramedLink) Take(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	if err := l.end.checkLen("receive", exchange, l.name, n, l.end.RecvBytes()); err != nil {
		return nil, err
	}
	err := l.usable(ctx)
	if err == nil {
		var rows []byte
		if rows, err = l.in.receive(exchange, n); rows != nil {
			return rows, nil
		}
	}
	if err != nil {
		return nil, l.wrap("receive", exchange, err)
	}
	return l.await(ctx, exchange, n)
}

// await waits for the rows of exchange, n bytes.
func (l *FramedLink) await(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	w := waiter{link: l, exchange: exchange, patience: l.opts.AskAfter, pending: l.pending.Load()}
	w.limit = awake.Of(ctx).Limit(l.opts.Timeout)
	_, w.progress = l.in.has(exchange)
	timer := time.NewTimer(w.nap())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-l.in.ready:
			rows, failed := l.in.receive(exchange, n)
			if rows != nil {
				if w.asked > 0 {
					l.carriers[0].missed()
				}
				return rows, nil
			}
			err = failed
		case <-l.hurry: // rows may have been lost
			_, w.progress = l.in.has(exchange)
			err = w.ask()
		case <-timer.C:
			if w.limit.Left() <= 0 {
				return nil, l.end.timeout(false, exchange, l.name, l.opts.Timeout, w.detail())
			}
			err = w.ask()
			timer.Reset(w.nap())
		case <-l.closed:
			err = ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, l.wrap("receive", exchange, err)
		}
	}
}

// waiter is the state of a Recv that has to wait.
type waiter struct {
	link     *FramedLink
	exchange solver.ExchangeNumber
	limit    awake.Limit
	patience time.Duration // until the next request
	asked    int
	progress uint64 // the inbox's progress at the last look
	pending  uint64 // answers of kindPending before the wait began
}

// nap returns the time until the next request or the timeout, if that is earlier.
func (w *waiter) nap() time.Duration {
	return min(w.patience, w.limit.Left())
}

// ask requests the missing parts from the neighbour, unless a part has arrived since the last call.
func (w *waiter) ask() error {
	l := w.link
	if l.nats.status() == pubsub.Closed {
		return pubsub.ErrClosed
	}
	has, progress := l.in.has(w.exchange)
	if progress != w.progress {
		w.progress = progress
		return nil
	}
	w.asked++
	l.asked.Add(1)
	w.patience = min(2*w.patience, l.opts.MaxAskAfter)
	return l.nats.request(w.exchange, has)
}

// detail says whether the neighbour was slow or silent, for the error of a timeout.
func (w *waiter) detail() string {
	l := w.link
	s := fmt.Sprintf("asked %d times; rank %d ", w.asked, l.end.Neighbour)
	if n := l.pending.Load() - w.pending; n > 0 {
		s += fmt.Sprintf("answered %d times that it has not sent them yet", n)
	} else {
		s += "did not answer"
	}
	if status := l.nats.status(); status != pubsub.Connected {
		s += fmt.Sprintf("; the connection to NATS is %s", status)
	}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if n := l.refused.Load(); n > 0 {
		s += fmt.Sprintf("; %d frames were refused, the last one: %v", n, l.in.refusal)
	}
	return s
}
