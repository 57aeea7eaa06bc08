package halo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/awake"
	"jacobi/solver"
)

// inbox collects the parts of the two exchanges that can be under way: the one that Recv waits for, or will, and
// the one after it.
type inbox struct {
	mu         sync.Mutex
	total      int // bytes of a exchange's rows
	sets       [2]inset
	next       solver.ExchangeNumber // the least exchange that Recv has not returned
	progress   uint64                // new parts so far
	broken     error                 // the ends do not agree; Recv fails
	refusal    error                 // why a frame was refused last
	ready      chan struct{}
	duplicates atomic.Uint64
}

// inset is one exchange. parts hold the payloads of the messages that came, nil where none did.
type inset struct {
	used     bool
	exchange solver.ExchangeNumber
	have     int
	parts    [][]byte
}

func (in *inbox) init(total int) {
	in.total = total
	in.ready = make(chan struct{}, 1)
}

// onRows takes in a frame from the neighbour. It runs on the subscription's goroutine.
func (l *NATSLink) onRows(m *nats.Msg) {
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

// add keeps the payload of f unless it is an old or a known one.
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
	s := in.at(f.exchange)
	switch {
	case s.used && s.exchange > f.exchange:
		return fmt.Errorf("exchange %d after exchange %d", f.exchange, s.exchange)
	case s.used && s.exchange < f.exchange:
		return fmt.Errorf("exchange %d before exchange %d was taken: a sender is at most one exchange ahead",
			f.exchange, s.exchange)
	case !s.used:
		*s = inset{used: true, exchange: f.exchange, parts: append(s.parts[:0], make([][]byte, f.parts)...)}
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

// take copies the exchange into rows if it is all there.
func (in *inbox) take(exchange solver.ExchangeNumber, rows []byte) (bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.broken != nil {
		return false, in.broken
	}
	in.next = max(in.next, exchange)
	s := in.set(exchange)
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

// at returns the place of exchange; it lets go of a exchange before next, which nobody will ask for.
func (in *inbox) at(exchange solver.ExchangeNumber) *inset {
	s := &in.sets[exchange%2]
	if s.used && s.exchange < in.next {
		s.used = false
	}
	return s
}

// set returns what has come of exchange, or nil.
func (in *inbox) set(exchange solver.ExchangeNumber) *inset {
	s := in.at(exchange)
	if !s.used || s.exchange != exchange {
		return nil
	}
	return s
}

// has returns the bitmap of the parts of exchange that came, nil if none did, and the count of all parts so far.
func (in *inbox) has(exchange solver.ExchangeNumber) (bitmap []byte, progress uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.set(exchange); s != nil {
		bitmap = make([]byte, (len(s.parts)+7)/8)
		for i, p := range s.parts {
			if p != nil {
				bitmap[i/8] |= 1 << (i % 8)
			}
		}
	}
	return bitmap, in.progress
}

// Recv waits for the neighbour's rows, and asks for them again and again when nothing comes. One call at a time.
func (l *NATSLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("receive", exchange, TransportNATS, len(rows), l.end.RecvBytes()); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return l.end.wrap("receive", exchange, TransportNATS, err)
	}
	if ok, err := l.in.take(exchange, rows); err != nil {
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
			ok, failed := l.in.take(exchange, rows)
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

// waiter is one Recv that has to wait.
type waiter struct {
	link     *NATSLink
	exchange solver.ExchangeNumber
	limit    awake.Limit
	patience time.Duration // until the next request
	asked    int
	progress uint64 // parts that had come when it last looked
	pending  uint64 // answers "not yet" before it began
}

// nap is the time to the next request or the timeout.
func (w *waiter) nap() time.Duration {
	return min(w.patience, w.limit.Left())
}

// ask asks the neighbour for the parts that did not come, unless some came since the last time.
func (w *waiter) ask() error {
	l := w.link
	if l.opts.Conn.Status() == nats.CLOSED {
		return nats.ErrConnectionClosed
	}
	has, progress := l.in.has(w.exchange)
	if progress != w.progress {
		w.progress = progress
		return nil
	}
	w.asked++
	l.asked.Add(1)
	w.patience = min(2*w.patience, l.opts.AskMost)
	f := l.end.frame(kindAsk, w.exchange)
	msg := make([]byte, headerSize+len(has))
	f.put(msg, has)
	return l.publish(l.ask, msg)
}

// detail tells a neighbour that is slow from one that is silent.
func (w *waiter) detail() string {
	l := w.link
	s := fmt.Sprintf("asked %d times; rank %d ", w.asked, l.end.Neighbour)
	if n := l.pending.Load() - w.pending; n > 0 {
		s += fmt.Sprintf("answered %d times that it has not come so far", n)
	} else {
		s += "did not answer"
	}
	if status := l.opts.Conn.Status(); status != nats.CONNECTED {
		s += fmt.Sprintf("; the connection to NATS is %s", status)
	}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if n := l.refused.Load(); n > 0 {
		s += fmt.Sprintf("; %d frames were refused, the last one: %v", n, l.in.refusal)
	}
	return s
}
