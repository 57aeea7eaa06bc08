package halo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/awake"
)

// inbox collects the parts of the two blocks that can be under way: the one that Recv waits for, or will, and
// the one after it.
type inbox struct {
	mu         sync.Mutex
	total      int // bytes of a block's rows
	sets       [2]inset
	next       uint64 // the least block that Recv has not returned
	progress   uint64 // new parts so far
	broken     error  // the ends do not agree; Recv fails
	refusal    error  // why a frame was refused last
	ready      chan struct{}
	duplicates atomic.Uint64
}

// inset is one block. parts hold the payloads of the messages that came, nil where none did.
type inset struct {
	used  bool
	block uint64
	have  int
	parts [][]byte
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
	if f.block < in.next {
		in.duplicates.Add(1)
		return nil
	}
	s := in.at(f.block)
	switch {
	case s.used && s.block > f.block:
		return fmt.Errorf("block %d after block %d", f.block, s.block)
	case s.used && s.block < f.block:
		return fmt.Errorf("block %d before block %d was taken: a sender is at most one block ahead", f.block, s.block)
	case !s.used:
		*s = inset{used: true, block: f.block, parts: append(s.parts[:0], make([][]byte, f.parts)...)}
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

// take copies the block into rows if it is all there.
func (in *inbox) take(block uint64, rows []byte) (bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.broken != nil {
		return false, in.broken
	}
	in.next = max(in.next, block)
	s := in.set(block)
	if s == nil || s.have < len(s.parts) {
		return false, nil
	}
	for i, p := range s.parts {
		rows = rows[copy(rows, p):]
		s.parts[i] = nil
	}
	s.used = false
	in.next = block + 1
	return true, nil
}

// at returns the place of block; it lets go of a block before next, which nobody will ask for.
func (in *inbox) at(block uint64) *inset {
	s := &in.sets[block%2]
	if s.used && s.block < in.next {
		s.used = false
	}
	return s
}

// set returns what has come of block, or nil.
func (in *inbox) set(block uint64) *inset {
	s := in.at(block)
	if !s.used || s.block != block {
		return nil
	}
	return s
}

// has returns the bitmap of the parts of block that came, nil if none did, and the count of all parts so far.
func (in *inbox) has(block uint64) (bitmap []byte, progress uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.set(block); s != nil {
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
func (l *NATSLink) Recv(ctx context.Context, block uint64, rows []byte) error {
	if err := l.end.checkLen("receive", block, TransportNATS, len(rows), l.end.RecvBytes()); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return l.end.wrap("receive", block, TransportNATS, err)
	}
	if ok, err := l.in.take(block, rows); err != nil {
		return l.end.wrap("receive", block, TransportNATS, err)
	} else if ok {
		return nil
	}
	w := waiter{link: l, block: block, patience: l.opts.AskAfter, pending: l.pending.Load()}
	w.limit = awake.Of(ctx).Limit(l.opts.Timeout)
	_, w.progress = l.in.has(block)
	timer := time.NewTimer(w.nap())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-l.in.ready:
			ok, failed := l.in.take(block, rows)
			if ok {
				return nil
			}
			err = failed
		case <-timer.C:
			if w.limit.Left() <= 0 {
				return l.end.timeout(false, block, TransportNATS, l.opts.Timeout, w.detail())
			}
			err = w.ask()
			timer.Reset(w.nap())
		case <-l.closed:
			err = ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return l.end.wrap("receive", block, TransportNATS, err)
		}
	}
}

// waiter is one Recv that has to wait.
type waiter struct {
	link     *NATSLink
	block    uint64
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
	has, progress := l.in.has(w.block)
	if progress != w.progress {
		w.progress = progress
		return nil
	}
	w.asked++
	l.asked.Add(1)
	w.patience = min(2*w.patience, l.opts.AskMost)
	f := l.end.frame(kindAsk, w.block)
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
