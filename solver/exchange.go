package solver

import (
	"context"
	"fmt"
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

// HostExchange is an Exchange through the host's memory, with one link for each side.
type HostExchange struct {
	calls   ExchangeCalls
	backend HaloRows
	links   [2]RowLink // by Side; nil where the mesh ends
	rows    []byte     // Depth dense rows
}

// NewHostExchange returns an exchange of the halos of b, whose layout is l, over links, indexed by Side. A side must
// have a link if and only if the layout has a neighbour there.
func NewHostExchange(b HaloRows, l Layout, links [2]RowLink) (*HostExchange, error) {
	for side, link := range links {
		if (link != nil) != l.Neighbour[side] {
			return nil, fmt.Errorf("exchange: %v side: link %v, neighbour %v",
				Side(side), link != nil, l.Neighbour[side])
		}
	}
	return &HostExchange{backend: b, links: links, rows: make([]byte, l.Depth*l.Mesh.RowBytes())}, nil
}

// Post implements Exchange.
func (x *HostExchange) Post(ctx context.Context, n ExchangeNumber) error {
	if err := x.calls.Post(n); err != nil {
		return err
	}
	for side, link := range x.links {
		if link == nil {
			continue
		}
		if err := x.backend.CopyEdge(ctx, Side(side), x.rows); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
		if err := link.Send(ctx, n, x.rows); err != nil {
			return err
		}
	}
	x.calls.Done()
	return nil
}

// Wait implements Exchange.
func (x *HostExchange) Wait(ctx context.Context, n ExchangeNumber) error {
	if err := x.calls.Wait(n); err != nil {
		return err
	}
	for side, link := range x.links {
		if link == nil {
			continue
		}
		if err := link.Recv(ctx, n, x.rows); err != nil {
			return err
		}
		if err := x.backend.SetHalo(ctx, Side(side), x.rows); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
	}
	x.calls.Done()
	return nil
}
