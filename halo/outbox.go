package halo

import (
	"fmt"
	"sync"

	"jacobi/solver"
)

// outbox keeps the rows of the last two exchanges sent, in case the neighbour asks for them. The memory is allocated
// once. mu guards it, and is held while frames are published.
type outbox struct {
	mu    sync.Mutex
	end   *End
	size  int // bytes of rows in a frame
	parts int
	slots [2]outSlot
	next  solver.ExchangeNumber // the lowest exchange not sent yet
}

// outSlot holds the rows of one exchange.
type outSlot struct {
	used     bool
	exchange solver.ExchangeNumber
	rows     []byte
}

// init divides the rows into frames of at most maxFrame bytes, and into a multiple of streams of them.
func (o *outbox) init(end *End, maxFrame, streams int) error {
	if maxFrame <= headerSize {
		return fmt.Errorf("frames of at most %d bytes: a header alone takes %d", maxFrame, headerSize)
	}
	total := end.SendBytes()
	parts := (total + maxFrame - headerSize - 1) / (maxFrame - headerSize)
	parts = (parts + streams - 1) / streams * streams
	if parts > maxParts {
		return fmt.Errorf("%d bytes in frames of at most %d: %d parts, at most %d are allowed", total, maxFrame, parts,
			maxParts)
	}
	o.end = end
	o.size = partSize(total, parts)
	o.parts = (total + o.size - 1) / o.size
	for i := range o.slots {
		o.slots[i].rows = make([]byte, total)
	}
	return nil
}

// bytes returns the size of the memory.
func (o *outbox) bytes() int64 {
	return int64(len(o.slots[0].rows) + len(o.slots[1].rows))
}

// room returns the memory for the rows of exchange. The neighbour has the rows of exchange-2, which were there.
func (o *outbox) room(exchange solver.ExchangeNumber) []byte {
	s := &o.slots[exchange%2]
	s.used = false
	return s.rows
}

// keep stores the rows of exchange in place of those of exchange-2. It copies nothing if they lie there.
func (o *outbox) keep(exchange solver.ExchangeNumber, rows []byte) *outSlot {
	s := &o.slots[exchange%2]
	if &s.rows[0] != &rows[0] {
		copy(s.rows, rows)
	}
	s.used, s.exchange = true, exchange
	o.next = exchange + 1
	return s
}

// part returns the header of part i of s, and its rows.
func (o *outbox) part(s *outSlot, i int) (frame, []byte) {
	f := o.end.frame(kindRows, s.exchange)
	f.part, f.parts = uint32(i), uint32(o.parts)
	at := i * o.size
	return f, s.rows[at:min(at+o.size, len(s.rows))]
}

// frame returns the frame of part i of s, in the memory of buf if that is large enough.
func (o *outbox) frame(s *outSlot, i int, buf []byte) []byte {
	f, rows := o.part(s, i)
	n := headerSize + len(rows)
	if cap(buf) < n {
		buf = make([]byte, headerSize+o.size)
	}
	f.put(buf[:n], rows)
	return buf[:n]
}

// publish passes the frames of s to send, without the parts in the bitmap has.
func (o *outbox) publish(s *outSlot, has []byte, send func(frame []byte) error) error {
	var buf []byte
	for i := range o.parts {
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
