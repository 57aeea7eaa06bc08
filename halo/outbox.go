package halo

import (
	"fmt"
	"sync"

	"jacobi/solver"
)

// outbox keeps the frames of the last two exchanges sent, for a neighbour that lacks them. Its buffers are made
// once; mu guards them and is held while they are published.
type outbox struct {
	mu   sync.Mutex
	end  *End
	size int // bytes of rows in a frame
	sets [2]outset
	next solver.ExchangeNumber // the least exchange that was not sent yet
}

// outset is one exchange, ready to send.
type outset struct {
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
	for i := range o.sets {
		buf := make([]byte, total+parts*headerSize)
		for left := total; left > 0; left -= o.size {
			n := headerSize + min(o.size, left)
			o.sets[i].frames = append(o.sets[i].frames, buf[:n:n])
			buf = buf[n:]
		}
	}
	return nil
}

// bytes returns the memory of the frames.
func (o *outbox) bytes() (n int64) {
	for _, s := range o.sets {
		for _, f := range s.frames {
			n += int64(len(f))
		}
	}
	return n
}

// keep replaces the exchange before the last by this one, and passes its frames to send, each as soon as it is made.
func (o *outbox) keep(exchange solver.ExchangeNumber, rows []byte, send func(frame []byte) error) error {
	s := &o.sets[exchange%2]
	s.used, s.exchange = false, exchange // until all frames are made
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
	outPending                 // the exchange was not sent yet
	outGone                    // the neighbour has received it
)

func (o *outbox) find(exchange solver.ExchangeNumber) ([][]byte, outState) {
	if s := &o.sets[exchange%2]; s.used && s.exchange == exchange {
		return s.frames, outKept
	}
	if exchange >= o.next {
		return nil, outPending
	}
	return nil, outGone
}
