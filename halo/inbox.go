package halo

import (
	"fmt"
	"sync"
	"sync/atomic"

	"jacobi/internal/base/pubsub"
	"jacobi/solver"
)

// inbox collects the parts of the two exchanges that can be under way at a time: the next one that Recv returns, and
// the one after it.
type inbox struct {
	mu         sync.Mutex
	slots      [2]inSlot
	next       solver.ExchangeNumber // the lowest exchange that Recv has not returned
	progress   uint64                // parts received so far, without duplicates, and pieces of parts
	broken     error                 // the two ends do not agree; Recv returns it
	refusal    error                 // why the last refused frame was refused
	ready      chan struct{}
	duplicates atomic.Uint64
}

// inSlot holds the rows of one exchange. Its memory is reused for the second exchange after it, which the neighbour
// sends only after this rank has sent the next one, and so has done with the rows.
type inSlot struct {
	used     bool
	exchange solver.ExchangeNumber
	memory   []byte
	rows     []byte // in memory
	parts    []partState
	have     int // parts that have arrived
	claimed  int // parts that are being written
}

type partState uint8

const (
	partMissing partState = iota
	partClaimed           // someone writes it into rows
	partHere
)

func (in *inbox) init(most int) {
	in.ready = make(chan struct{}, 1)
	for i := range in.slots {
		in.slots[i].memory = make([]byte, most)
	}
}

// onRows handles a message from the neighbour: rows, or word that they are not there yet. It runs on the subscription's
// goroutine, which alone uses p.
func (l *FramedLink) onRows(m pubsub.Message, p *packer) {
	f, payload, err := parseFrame(m.Data)
	if err == nil {
		err = l.end.addressed(&f)
	}
	if err == nil && f.kind != kindRows && f.kind != kindPacked && f.kind != kindPending {
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
	if err := l.in.add(&f, payload, p, l.end.DType); err != nil {
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

// add keeps the payload of f, unless its part has come before or Recv has returned its exchange. A part that p cannot
// unpack is missing, and will be asked for.
func (in *inbox) add(f *frame, payload []byte, p *packer, dtype solver.DType) error {
	dst, err := in.claim(f, len(payload))
	if err != nil || dst == nil {
		return err
	}
	if f.kind == kindPacked {
		err = p.unpack(dst, payload, dtype)
	} else {
		copy(dst, payload)
	}
	in.release(f, err == nil)
	return err
}

// claim returns the memory into which the caller writes the part of f, whose payload has length bytes, before it calls
// release. f agrees with this end. It returns nil if the part has come before, is being written, or is of an exchange
// that Recv has returned.
func (in *inbox) claim(f *frame, length int) ([]byte, error) {
	at, n, err := partOf(f, length)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if f.exchange < in.next {
		in.duplicates.Add(1)
		return nil, nil
	}
	s := in.slot(f.exchange)
	switch {
	case s.used && s.exchange > f.exchange:
		return nil, fmt.Errorf("exchange %d after exchange %d", f.exchange, s.exchange)
	case s.used && s.exchange < f.exchange:
		return nil, fmt.Errorf("exchange %d came before exchange %d was received: a sender is at most one exchange "+
			"ahead", f.exchange, s.exchange)
	case !s.used:
		s.used, s.exchange, s.have, s.claimed = true, f.exchange, 0, 0
		s.parts = append(s.parts[:0], make([]partState, f.parts)...)
		s.rows = s.memory[:f.total]
	case len(s.parts) != int(f.parts):
		return nil, &MismatchError{Field: "parts", Got: f.parts, Want: len(s.parts)}
	case len(s.rows) != int(f.total):
		return nil, &MismatchError{Field: "bytes of an exchange", Got: f.total, Want: len(s.rows)}
	}
	if s.parts[f.part] != partMissing {
		in.duplicates.Add(1)
		return nil, nil
	}
	s.parts[f.part] = partClaimed
	s.claimed++
	return s.rows[at : at+n : at+n], nil
}

// release ends a claim: the part is in its place, or it is missing again.
func (in *inbox) release(f *frame, here bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := &in.slots[f.exchange%2]
	s.claimed--
	if !here {
		s.parts[f.part] = partMissing
		return
	}
	s.parts[f.part] = partHere
	s.have++
	in.progress++
	if s.have == len(s.parts) {
		in.signal()
	}
}

// advance tells that a piece of a part has arrived.
func (in *inbox) advance() {
	in.mu.Lock()
	in.progress++
	in.mu.Unlock()
}

// receive returns the rows of exchange, n bytes, if all their parts have arrived, nil otherwise. The rows stay until
// this rank has sent the next exchange.
func (in *inbox) receive(exchange solver.ExchangeNumber, n int) ([]byte, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.broken != nil {
		return nil, in.broken
	}
	in.next = max(in.next, exchange)
	s := in.arrived(exchange)
	if s == nil || s.have < len(s.parts) {
		return nil, nil
	}
	if err := mismatch("bytes", len(s.rows), n); err != nil {
		return nil, err
	}
	in.next = exchange + 1
	return s.rows, nil
}

// vacate frees the slots whose rows receive has returned: nobody reads them any more.
func (in *inbox) vacate() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.slots {
		in.slot(solver.ExchangeNumber(i))
	}
}

// slot returns the slot for exchange. It frees the slot first if that holds an exchange that Recv has returned.
func (in *inbox) slot(exchange solver.ExchangeNumber) *inSlot {
	s := &in.slots[exchange%2]
	if s.used && s.exchange < in.next && s.claimed == 0 {
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

// has returns the bitmap of the parts of exchange that have arrived, nil if none has, and the progress so far.
func (in *inbox) has(exchange solver.ExchangeNumber) (bitmap []byte, progress uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.arrived(exchange); s != nil {
		bitmap = make([]byte, (len(s.parts)+7)/8)
		for i, p := range s.parts {
			if p == partHere {
				bitmap[i/8] |= 1 << (i % 8)
			}
		}
	}
	return bitmap, in.progress
}
