package halo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
	"jacobi/solver"
)

// outbox keeps the rows of the last two exchanges sent, in case the neighbour asks for them. The memory is allocated
// once. mu guards it, and is held while frames are published.
type outbox struct {
	mu      sync.Mutex
	end     *End
	most    int // bytes of rows in a frame
	streams int // among which the parts of large rows are divided
	slots   [2]outSlot
	next    solver.ExchangeNumber // the lowest exchange not sent yet
}

// outSlot holds the rows of one exchange.
type outSlot struct {
	used     bool
	exchange solver.ExchangeNumber
	memory   []byte
	rows     []byte // in memory
	parts    int
	size     int  // bytes of rows in a part
	packed   bool // parts that become smaller so are packed
}

// init has rows divided into frames of at most maxFrame bytes, and large ones into a multiple of streams of them.
func (o *outbox) init(end *End, maxFrame, streams int) error {
	if maxFrame <= headerSize {
		return fmt.Errorf("frames of at most %d bytes: a header alone takes %d", maxFrame, headerSize)
	}
	o.end, o.most, o.streams = end, maxFrame-headerSize, streams
	total := end.SendBytes()
	if parts := o.divide(total); parts > maxParts {
		return fmt.Errorf("%d bytes in frames of at most %d: %d parts, at most %d are allowed", total, maxFrame, parts,
			maxParts)
	}
	for i := range o.slots {
		o.slots[i].memory = make([]byte, total)
	}
	return nil
}

// divide returns the number of parts for rows of total bytes.
func (o *outbox) divide(total int) int {
	parts := max(1, (total+o.most-1)/o.most)
	if total > inlineRows {
		parts = (parts + o.streams - 1) / o.streams * o.streams
	}
	return parts
}

// bytes returns the size of the memory.
func (o *outbox) bytes() int64 {
	return int64(len(o.slots[0].memory) + len(o.slots[1].memory))
}

// room returns memory for n bytes of rows of exchange. The neighbour has the rows of exchange-2, which were there.
func (o *outbox) room(exchange solver.ExchangeNumber, n int) []byte {
	s := &o.slots[exchange%2]
	s.used = false
	return s.memory[:n]
}

// keep stores the rows of exchange in place of those of exchange-2. It copies nothing if they lie there.
func (o *outbox) keep(exchange solver.ExchangeNumber, rows []byte, packed bool) *outSlot {
	s := &o.slots[exchange%2]
	s.rows = s.memory[:len(rows)]
	if len(rows) > 0 && &s.rows[0] != &rows[0] {
		copy(s.rows, rows)
	}
	s.used, s.exchange, s.packed = true, exchange, packed
	s.size = partSize(len(rows), o.divide(len(rows)))
	s.parts = max(1, (len(rows)+s.size-1)/max(1, s.size))
	o.next = exchange + 1
	return s
}

// part returns the header of part i of s, and its rows.
func (o *outbox) part(s *outSlot, i int) (frame, []byte) {
	f := o.end.frame(kindRows, s.exchange)
	f.part, f.parts, f.total = uint32(i), uint32(s.parts), uint64(len(s.rows))
	at := i * s.size
	return f, s.rows[at:min(at+s.size, len(s.rows))]
}

// frame returns the frame of part i of s, in the memory of buf if that is large enough.
func (o *outbox) frame(s *outSlot, i int, buf []byte) []byte {
	f, rows := o.part(s, i)
	n := headerSize + len(rows)
	if cap(buf) < n {
		buf = make([]byte, headerSize+min(o.most, len(s.memory)))
	}
	f.put(buf[:n], rows)
	return buf[:n]
}

// publish passes the frames of s to send, without the parts in the bitmap has.
func (o *outbox) publish(s *outSlot, has []byte, send func(frame []byte) error) error {
	var buf []byte
	for i := range s.parts {
		if i/8 < len(has) && has[i/8]>>(i%8)&1 == 1 {
			continue
		}
		buf = o.frame(s, i, buf)
		if err := send(buf); err != nil {
			return err
		}
	}
	return nil
}

type outState int

const (
	outKept    outState = iota // the rows are there
	outPending                 // the exchange has not been sent yet
	outGone                    // the neighbour has received it
)

// find returns the slot of exchange if it is kept, and its state.
func (o *outbox) find(exchange solver.ExchangeNumber) (*outSlot, outState) {
	if s := &o.slots[exchange%2]; s.used && s.exchange == exchange {
		return s, outKept
	}
	if exchange >= o.next {
		return nil, outPending
	}
	return nil, outGone
}

// responder is the higher rank's part of a handshake. Its subscription lives as long as the links, so that a proposal
// whose answer was lost gets the same answer again.
type responder struct {
	*handshake
	ctx  context.Context // of Connect; bounds the opening of a link over NATS
	done chan struct{}   // closed once settled

	mu      sync.Mutex
	settled bool
	last    *answer
	link    Link
	info    Info
	err     error
}

func newResponder(ctx context.Context, h *handshake) *responder {
	return &responder{handshake: h, ctx: ctx, done: make(chan struct{})}
}

func (r *responder) listen() (pubsub.Subscription, error) {
	sub, err := r.opts.NATS.Conn.Subscribe(r.subject(), r.onProposal)
	if err != nil {
		return nil, fmt.Errorf("halo: rank %d: subscribe to %s: %w", r.end.Rank, r.subject(), err)
	}
	return sub, nil
}

// wait waits until the proposals have settled the link, or ctx ends.
func (r *responder) wait(ctx context.Context) (Link, Info, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		r.settled = true
		r.err = fmt.Errorf("waiting for its proposal: %w", context.Cause(ctx))
	}
	return r.link, r.info, r.err
}

func (r *responder) onProposal(m pubsub.Message) {
	var p proposal
	if err := json.Unmarshal(m.Data, &p); err != nil {
		r.opts.NATS.Log.Warn("refused a proposal", zap.Error(err))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last != nil && p.Step == r.last.Step: // a repetition: the answer was lost or late
	case r.settled || r.last != nil && p.Step < r.last.Step:
		return
	default:
		r.try(&p)
	}
	msg, err := json.Marshal(r.last)
	if err == nil {
		err = r.opts.NATS.Conn.Publish(m.Reply, msg)
	}
	if err != nil { // the lower rank asks again
		r.opts.NATS.Log.Debug("answer lost", zap.Error(err))
	}
}

// try opens the link that p proposes and sets r.last, the answer.
func (r *responder) try(p *proposal) {
	r.last = &answer{Step: p.Step}
	if err := r.compatible(p); err != nil {
		r.last.Error, r.last.Fatal = fmt.Sprintf("the ranks disagree: %v", err), true
		r.finish(fmt.Errorf("the ranks disagree: %w", err))
		return
	}
	if p.Transport == "" {
		r.last.OK = true
		r.finish(fmt.Errorf("halo.transport is p2p: %s", p.Why))
		return
	}
	link, err := r.accept(p)
	if err != nil {
		r.last.Error = err.Error()
		return
	}
	r.last.OK = true
	r.link, r.info = link, Info{p.Transport, p.Why}
	r.finish(nil)
}

func (r *responder) compatible(p *proposal) error {
	if err := mismatch("halo.transport", p.Mode, r.opts.Mode); err != nil {
		return err
	}
	return sameLink(r.end, p.End)
}

func (r *responder) accept(p *proposal) (Link, error) {
	if p.Transport == TransportNATS {
		return NewNATS(r.ctx, r.end, r.opts.NATS)
	}
	for _, peer := range r.opts.Peers {
		if peer.Name() == p.Transport {
			return peer.Accept(r.end, p.Offer)
		}
	}
	return nil, fmt.Errorf("no transport %q here", p.Transport)
}

func (r *responder) finish(err error) {
	r.settled, r.err = true, err
	close(r.done)
}
