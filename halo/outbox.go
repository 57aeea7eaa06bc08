package halo

import (
	"fmt"
	"sync"

	"jacobi/solver"
)

// outbox keeps the rows of the last two exchanges sent, in case the neighbour asks for them. The memory is allocated
// once. mu guards it, and is held while small rows and asked ones are published.
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

// publish passes the frames of s to send, without the parts in the bitmap has.
func (o *outbox) publish(s *outSlot, has []byte, send func(frame []byte) error) error {
	var buf []byte
	for i := range s.parts {
		if i/8 < len(has) && has[i/8]>>(i%8)&1 == 1 {
			continue
		}
		f, rows := o.part(s, i)
		msg := room(&buf, headerSize+len(rows))
		f.put(msg, rows)
		if err := send(msg); err != nil {
			return err
		}
	}
	return nil
}

// find returns the slot of exchange, nil if it is not kept, and whether the exchange has not been sent yet.
func (o *outbox) find(exchange solver.ExchangeNumber) (s *outSlot, pending bool) {
	if s := &o.slots[exchange%2]; s.used && s.exchange == exchange {
		return s, false
	}
	return nil, exchange >= o.next
}
