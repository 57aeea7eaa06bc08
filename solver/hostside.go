package solver

import (
	"context"
	"fmt"
	"time"
)

// hostSide carries rows between a device and the neighbour at one side, through the host's memory and over a link. For
// each exchange its caller calls fill, send, take and set, in this order.
type hostSide struct {
	link       RowLink
	lender     RowLender      // link, if it is one; nil otherwise
	timer      ExchangeTimer  // the same
	number     ExchangeNumber // the present one
	sent, recv *[]byte
	out, in    []byte     // the rows of the present exchange
	done       chan error // from the goroutine that sends and receives them, if there is one
}

// newHostSide returns the side of a link. Unless the link lends memory, the side keeps the rows that it sends and those
// that it receives in sent and recv, which it enlarges as needed. Sides that are used one at a time may share them,
// so that they stay in the cache.
func newHostSide(link RowLink, sent, recv *[]byte) *hostSide {
	lender, _ := link.(RowLender)
	timer, _ := link.(ExchangeTimer)
	return &hostSide{link: link, lender: lender, timer: timer, sent: sent, recv: recv, done: make(chan error, 1)}
}

// sized returns the first n bytes of memory, which it enlarges if need be.
func sized(memory *[]byte, n int) []byte {
	if len(*memory) < n {
		*memory = make([]byte, n)
	}
	return (*memory)[:n]
}

// fill begins the next exchange: it has copyOut copy n bytes of rows out of the device.
func (s *hostSide) fill(ctx context.Context, n int, copyOut func(dst []byte) error) (err error) {
	s.number++
	if s.lender == nil {
		s.out = sized(s.sent, n)
	} else if s.out, err = s.lender.Room(ctx, s.number, n); err != nil {
		return err
	}
	begin := time.Now()
	if err := copyOut(s.out); err != nil {
		return fmt.Errorf("exchange %d: %w", s.number, err)
	}
	if s.timer != nil {
		s.timer.CopiedEdge(time.Since(begin))
	}
	return nil
}

// send sends the rows.
func (s *hostSide) send(ctx context.Context) error { return s.link.Send(ctx, s.number, s.out) }

// take receives n bytes of rows.
func (s *hostSide) take(ctx context.Context, n int) (err error) {
	if s.lender == nil {
		s.in = sized(s.recv, n)
		return s.link.Recv(ctx, s.number, s.in)
	}
	s.in, err = s.lender.Take(ctx, s.number, n)
	return err
}

// swap sends the rows and receives n bytes of those of the neighbour.
func (s *hostSide) swap(ctx context.Context, n int) error {
	if err := s.send(ctx); err != nil {
		return err
	}
	return s.take(ctx, n)
}

// set has copyIn copy the rows that take has received into the device.
func (s *hostSide) set(copyIn func(src []byte) error) error {
	begin := time.Now()
	if err := copyIn(s.in); err != nil {
		return fmt.Errorf("exchange %d: %w", s.number, err)
	}
	if s.timer != nil {
		s.timer.CopiedHalo(time.Since(begin))
	}
	return nil
}

// swept tells a link that measures that the rank attended to other work from one time to another.
func (s *hostSide) swept(from, to time.Time) {
	if s.timer != nil {
		s.timer.Swept(from, to)
	}
}
