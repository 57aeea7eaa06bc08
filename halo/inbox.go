package halo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/internal/awake"
	"jacobi/internal/pubsub"
	"jacobi/solver"
)

// inbox collects the parts of the two exchanges that can be under way at a time: the next one that Recv returns, and
// the one after it.
type inbox struct {
	mu         sync.Mutex
	total      int // bytes in the rows of an exchange
	slots      [2]inSlot
	next       solver.ExchangeNumber // the lowest exchange that Recv has not returned
	progress   uint64                // parts received so far, without duplicates
	broken     error                 // the two ends do not agree; Recv returns it
	refusal    error                 // why the last refused frame was refused
	ready      chan struct{}
	duplicates atomic.Uint64
}

// inSlot holds the parts of one exchange: the payload of each part that has arrived, nil for the others.
type inSlot struct {
	used     bool
	exchange solver.ExchangeNumber
	have     int
	parts    [][]byte
}

func (in *inbox) init(total int) {
	in.total = total
	in.ready = make(chan struct{}, 1)
}

// onRows handles a message from the neighbour: rows, or word that they are not there yet. It runs on the subscription's
// goroutine.
func (l *NATSLink) onRows(m pubsub.Message) {
	f, payload, err := parseFrame(m.Data)
	if err == nil {
		err = l.end.addressed(&f)
	}
	if err == nil && f.kind != kindRows && f.kind != kindPending {
		err = mismatch("frame kind", f.kind, kindRows)
	}
	if err != nil {
		l.refuse(err)
		return
	}
	if err := l.end.agrees(&f); err != nil {
		l.in.fail(err)
		return
	}
	if f.kind == kindPending {
		l.pending.Add(1)
		return
	}
	if err := l.in.add(&f, payload); err != nil {
		l.refuse(err)
	}
}

// fail makes Recv fail with err.
func (in *inbox) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.broken = err
	in.signal()
}

func (in *inbox) signal() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// add keeps the payload of f, unless its part has come before or Recv has returned its exchange.
func (in *inbox) add(f *frame, payload []byte) error {
	if _, err := partAt(f, len(payload), in.total); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if f.exchange < in.next {
		in.duplicates.Add(1)
		return nil
	}
	s := in.slot(f.exchange)
	switch {
	case s.used && s.exchange > f.exchange:
		return fmt.Errorf("exchange %d after exchange %d", f.exchange, s.exchange)
	case s.used && s.exchange < f.exchange:
		return fmt.Errorf("exchange %d came before exchange %d was received: a sender is at most one exchange ahead",
			f.exchange, s.exchange)
	case !s.used:
		*s = inSlot{used: true, exchange: f.exchange, parts: append(s.parts[:0], make([][]byte, f.parts)...)}
	case len(s.parts) != int(f.parts):
		return &MismatchError{Field: "parts", Got: f.parts, Want: len(s.parts)}
	}
	if s.parts[f.part] != nil {
		in.duplicates.Add(1)
		return nil
	}
	s.parts[f.part] = payload
	s.have++
	in.progress++
	if s.have == len(s.parts) {
		in.signal()
	}
	return nil
}

// receive copies the rows of exchange into rows and returns true if all their parts have arrived.
func (in *inbox) receive(exchange solver.ExchangeNumber, rows []byte) (bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.broken != nil {
		return false, in.broken
	}
	in.next = max(in.next, exchange)
	s := in.arrived(exchange)
	if s == nil || s.have < len(s.parts) {
		return false, nil
	}
	for i, p := range s.parts {
		rows = rows[copy(rows, p):]
		s.parts[i] = nil
	}
	s.used = false
	in.next = exchange + 1
	return true, nil
}

// slot returns the slot for exchange. It frees the slot first if that holds an exchange that Recv has returned.
func (in *inbox) slot(exchange solver.ExchangeNumber) *inSlot {
	s := &in.slots[exchange%2]
	if s.used && s.exchange < in.next {
		s.used = false
	}
	return s
}

// arrived returns the slot of exchange, or nil if no part of exchange has arrived.
func (in *inbox) arrived(exchange solver.ExchangeNumber) *inSlot {
	s := in.slot(exchange)
	if !s.used || s.exchange != exchange {
		return nil
	}
	return s
}

// has returns the bitmap of the parts of exchange that have arrived, nil if none has, and the number of parts of all
// exchanges so far.
func (in *inbox) has(exchange solver.ExchangeNumber) (bitmap []byte, progress uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.arrived(exchange); s != nil {
		bitmap = make([]byte, (len(s.parts)+7)/8)
		for i, p := range s.parts {
			if p != nil {
				bitmap[i/8] |= 1 << (i % 8)
			}
		}
	}
	return bitmap, in.progress
}

// Recv waits for the neighbour's rows. While none arrive it asks for them, with growing pauses. Calls must not overlap.
func (l *NATSLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("receive", exchange, TransportNATS, len(rows), l.end.RecvBytes()); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return l.end.wrap("receive", exchange, TransportNATS, err)
	}
	if ok, err := l.in.receive(exchange, rows); err != nil {
		return l.end.wrap("receive", exchange, TransportNATS, err)
	} else if ok {
		return nil
	}
	w := waiter{link: l, exchange: exchange, patience: l.opts.AskAfter, pending: l.pending.Load()}
	w.limit = awake.Of(ctx).Limit(l.opts.Timeout)
	_, w.progress = l.in.has(exchange)
	timer := time.NewTimer(w.nap())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-l.in.ready:
			ok, failed := l.in.receive(exchange, rows)
			if ok {
				return nil
			}
			err = failed
		case <-timer.C:
			if w.limit.Left() <= 0 {
				return l.end.timeout(false, exchange, TransportNATS, l.opts.Timeout, w.detail())
			}
			err = w.ask()
			timer.Reset(w.nap())
		case <-l.closed:
			err = ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return l.end.wrap("receive", exchange, TransportNATS, err)
		}
	}
}

// waiter is the state of a Recv that has to wait.
type waiter struct {
	link     *NATSLink
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
	if l.opts.Conn.Status() == pubsub.Closed {
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
	f := l.end.frame(kindAsk, w.exchange)
	msg := make([]byte, headerSize+len(has))
	f.put(msg, has)
	return l.publish(l.ask, msg)
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
	if status := l.opts.Conn.Status(); status != pubsub.Connected {
		s += fmt.Sprintf("; the connection to NATS is %s", status)
	}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if n := l.refused.Load(); n > 0 {
		s += fmt.Sprintf("; %d frames were refused, the last one: %v", n, l.in.refusal)
	}
	return s
}
