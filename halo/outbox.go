package halo

import (
	"fmt"
	"sync"

	"jacobi/solver"
)

// outbox keeps the frames of the last two exchanges sent, in case the neighbour asks for them. The buffers are
// allocated once. mu guards them, and is held while they are published.
type outbox struct {
	mu    sync.Mutex
	end   *End
	size  int // bytes of rows in a frame
	slots [2]outSlot
	next  solver.ExchangeNumber // the lowest exchange not sent yet
}

// outSlot holds the frames of one exchange.
type outSlot struct {
	used     bool
	exchange solver.ExchangeNumber
	frames   [][]byte
}

func (o *outbox) init(end *End, maxFrame int) error {
	if maxFrame <= headerSize {
		return fmt.Errorf("frames of at most %d bytes: a header alone takes %d", maxFrame, headerSize)
	}
	total := end.SendBytes()
	parts := (total + maxFrame - headerSize - 1) / (maxFrame - headerSize)
	if parts > maxParts {
		return fmt.Errorf("%d bytes in frames of at most %d: %d parts, at most %d are allowed", total, maxFrame, parts,
			maxParts)
	}
	o.end = end
	o.size = partSize(total, parts)
	for i := range o.slots {
		buf := make([]byte, total+parts*headerSize)
		for left := total; left > 0; left -= o.size {
			n := headerSize + min(o.size, left)
			o.slots[i].frames = append(o.slots[i].frames, buf[:n:n])
			buf = buf[n:]
		}
	}
	return nil
}

// bytes returns the size of the buffers.
func (o *outbox) bytes() (n int64) {
	for _, s := range o.slots {
		for _, f := range s.frames {
			n += int64(len(f))
		}
	}
	return n
}

// keep stores the frames of exchange in place of those of exchange-2. It passes each frame to send as soon as it is
// encoded.
func (o *outbox) keep(exchange solver.ExchangeNumber, rows []byte, send func(frame []byte) error) error {
	s := &o.slots[exchange%2]
	s.used, s.exchange = false, exchange // unused until all frames are encoded
	o.next = exchange + 1
	f := o.end.frame(kindRows, exchange)
	f.parts = uint32(len(s.frames))
	for i, frame := range s.frames {
		f.part = uint32(i)
		n := min(o.size, len(rows))
		f.put(frame, rows[:n])
		rows = rows[n:]
		if err := send(frame); err != nil {
			return err
		}
	}
	s.used = true
	return nil
}

type outState int

const (
	outKept    outState = iota // the frames are there
	outPending                 // the exchange has not been sent yet
	outGone                    // the neighbour has received it
)

// find returns the frames of exchange if they are kept, and their state.
func (o *outbox) find(exchange solver.ExchangeNumber) ([][]byte, outState) {
	if s := &o.slots[exchange%2]; s.used && s.exchange == exchange {
		return s.frames, outKept
	}
	if exchange >= o.next {
		return nil, outPending
	}
	return nil, outGone
}
