package solver

import (
	"context"
	"fmt"
	"time"
)

// ExchangeNumber counts the exchanges of a field's halos: 1, 2, ... Loading a field, which fills its halos too, is not
// an exchange. The number differs from the index of a pass: where halos are deeper than a pass, several passes follow
// one exchange.
type ExchangeNumber uint64

// Exchange moves edge rows between neighbours. Let mine and theirs be the fields of two ranks, of which the one below
// owns rows [h, ...). After Post(n) on both ranks and Wait(n) on mine,
//
//	mine.now[h+i] == theirs.now[h+i], 0 <= i < Depth
//
// The same holds for every side that has a neighbour. Calls alternate: Post(1), Wait(1), Post(2) and so on. A call in
// another order gets an *ExchangeOrderError, or the *OrderError of the backend, and sends nothing. Errors name the
// exchange.
type Exchange interface {
	// Post sends the edge rows of exchange n, between Edges and Interior of the last pass before the exchange.
	Post(ctx context.Context, n ExchangeNumber) error
	// Wait fills the halos with the rows of exchange n, after that Interior and before the pass that reads them.
	Wait(ctx context.Context, n ExchangeNumber) error
}

// RowLink carries rows between one side of this rank and the facing side of its neighbour: Recv(n) on one end yields
// the rows given to Send(n) on the other. Errors name the exchange.
type RowLink interface {
	Send(ctx context.Context, n ExchangeNumber, rows []byte) error
	Recv(ctx context.Context, n ExchangeNumber, rows []byte) error
}

// RowLender is a RowLink with memory of its own for the rows, which saves a copy each way.
type RowLender interface {
	RowLink
	// Room returns memory for the rows of exchange n, the next one to send. Send(n) of it copies nothing.
	Room(ctx context.Context, n ExchangeNumber) ([]byte, error)
	// Take waits as Recv does and returns the rows, which stay until Room or Send of exchange n+1.
	Take(ctx context.Context, n ExchangeNumber) ([]byte, error)
}

// ExchangeTimer is a RowLink that learns what the rank does beside Send and Recv.
type ExchangeTimer interface {
	RowLink
	// CopiedEdge says that an edge, which Send is given next, was copied out of the field in d.
	CopiedEdge(d time.Duration)
	// CopiedHalo says that the rows received last were copied into the field in d.
	CopiedHalo(d time.Duration)
	// Swept says, before the rows of an exchange are received, that the rank did not attend to the exchange from one
	// time to another: it swept on. It is not called where goroutines send and receive.
	Swept(from, to time.Time)
}

// HostExchange is an Exchange through the host's memory, with one link for each side.
type HostExchange struct {
	calls   ExchangeCalls
	backend HaloRows
	sides   [2]*hostSide // by Side; nil where the mesh ends
	posted  time.Time    // the end of the last Post
}

// hostSide is one side of a HostExchange.
type hostSide struct {
	side       Side
	link       RowLink
	lender     RowLender     // link, if it is one; nil otherwise
	timer      ExchangeTimer // the same
	edge, halo []byte        // Depth dense rows to send, and to receive
	done       chan error    // result of the goroutine that has edge and halo from Post to Wait; nil if there is none
}

// NewHostExchange returns an exchange of the halos of b, whose layout is l, over links, indexed by Side. A side must
// have a link if and only if the layout has a neighbour there.
func NewHostExchange(b HaloRows, l Layout, links [2]RowLink) (*HostExchange, error) {
	x := &HostExchange{backend: b}
	var rows []byte // of all sides, so that they stay in the cache
	for side, link := range links {
		if (link != nil) != l.Neighbour[side] {
			return nil, fmt.Errorf("exchange: %v side: link %v, neighbour %v",
				Side(side), link != nil, l.Neighbour[side])
		}
		if link == nil {
			continue
		}
		if rows == nil {
			rows = make([]byte, l.Depth*l.Mesh.RowBytes())
		}
		lender, _ := link.(RowLender)
		timer, _ := link.(ExchangeTimer)
		x.sides[side] = &hostSide{side: Side(side), link: link, lender: lender, timer: timer, edge: rows, halo: rows}
	}
	return x, nil
}

// NewOverlappedExchange returns an exchange as NewHostExchange does, in which a goroutine for each side sends and
// receives the rows. Post returns before the rows are sent, so the interior can be swept meanwhile. That pays where the
// backend sweeps on a device, and the host would only wait.
func NewOverlappedExchange(b HaloRows, l Layout, links [2]RowLink) (*HostExchange, error) {
	x, err := NewHostExchange(b, l, links)
	if err != nil {
		return nil, err
	}
	for _, s := range x.sides {
		if s != nil {
			n := len(s.edge)
			s.edge, s.halo, s.done = make([]byte, n), make([]byte, n), make(chan error, 1)
		}
	}
	return x, nil
}

// Post implements Exchange.
func (x *HostExchange) Post(ctx context.Context, n ExchangeNumber) error {
	if err := x.calls.Post(n); err != nil {
		return err
	}
	for _, s := range x.sides {
		if s == nil {
			continue
		}
		if err := s.room(ctx, n); err != nil {
			return err
		}
		if err := s.copyEdge(ctx, x.backend); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
		if s.done != nil {
			go s.swap(ctx, n)
		} else if err := s.link.Send(ctx, n, s.edge); err != nil {
			return err
		}
	}
	x.posted = time.Now()
	x.calls.Done()
	return nil
}

// copyEdge copies the edge out of the field.
func (s *hostSide) copyEdge(ctx context.Context, b HaloRows) error {
	begin := time.Now()
	err := b.CopyEdge(ctx, s.side, s.edge)
	if s.timer != nil {
		s.timer.CopiedEdge(time.Since(begin))
	}
	return err
}

// setHalo copies the rows received into the field.
func (s *hostSide) setHalo(ctx context.Context, b HaloRows) error {
	begin := time.Now()
	err := b.SetHalo(ctx, s.side, s.halo)
	if s.timer != nil {
		s.timer.CopiedHalo(time.Since(begin))
	}
	return err
}

// room finds memory for the edge.
func (s *hostSide) room(ctx context.Context, n ExchangeNumber) (err error) {
	if s.lender != nil {
		s.edge, err = s.lender.Room(ctx, n)
	}
	return err
}

// swap sends the edge and receives the halo.
func (s *hostSide) swap(ctx context.Context, n ExchangeNumber) {
	err := s.link.Send(ctx, n, s.edge)
	if err == nil {
		err = s.take(ctx, n)
	}
	s.done <- err
}

// take receives the halo.
func (s *hostSide) take(ctx context.Context, n ExchangeNumber) (err error) {
	if s.lender == nil {
		return s.link.Recv(ctx, n, s.halo)
	}
	s.halo, err = s.lender.Take(ctx, n)
	return err
}

// Wait implements Exchange.
func (x *HostExchange) Wait(ctx context.Context, n ExchangeNumber) error {
	if err := x.calls.Wait(n); err != nil {
		return err
	}
	begin := time.Now()
	for _, s := range x.sides {
		if s == nil {
			continue
		}
		if s.timer != nil && s.done == nil {
			s.timer.Swept(x.posted, begin)
		}
		if err := s.receive(ctx, n); err != nil {
			return err
		}
		if err := s.setHalo(ctx, x.backend); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
	}
	x.calls.Done()
	return nil
}

// receive waits for the rows of exchange n.
func (s *hostSide) receive(ctx context.Context, n ExchangeNumber) error {
	if s.done != nil {
		return <-s.done // ends with the context of Post
	}
	return s.take(ctx, n)
}
