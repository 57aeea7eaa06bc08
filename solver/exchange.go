package solver

import (
	"context"
	"fmt"
)

// ExchangeNumber counts the exchanges of halos of a field: 1, 2, ... The halos that the loaded field came with are no
// exchange. It is not the index of a pass: where halos are deeper than a pass, several passes follow one exchange.
type ExchangeNumber uint64

// Exchange moves edge rows between neighbours. Writing mine and theirs for two ranks' fields, the rank below owning
// rows [h, ...): after Post(n) on both ranks and Wait(n) on mine,
//
//	mine.now[h+i] == theirs.now[h+i], 0 <= i < Depth, and so for every side that has a neighbour.
type Exchange interface {
	// Post sends the edge rows of exchange n; called between Edges and Interior of the last pass before it.
	Post(ctx context.Context, n ExchangeNumber) error
	// Wait fills the halos by exchange n; called before the pass that reads them.
	Wait(ctx context.Context, n ExchangeNumber) error
}

// RowLink carries rows between one side of this rank and the facing side of its neighbour there. Rows given to
// Send(n) on one end are what Recv(n) yields on the other.
type RowLink interface {
	Send(ctx context.Context, n ExchangeNumber, rows []byte) error
	Recv(ctx context.Context, n ExchangeNumber, rows []byte) error
}

// HostExchange is an Exchange through the host's memory, over one link a side.
type HostExchange struct {
	backend HaloRows
	links   [2]RowLink // by Side; nil where the mesh ends
	rows    []byte     // Depth dense rows
}

// NewHostExchange exchanges the halos of a backend with the given layout over links, by Side. A side has a link
// exactly if the layout has a neighbour there.
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
	for side, link := range x.links {
		if link == nil {
			continue
		}
		if err := x.backend.CopyEdge(ctx, Side(side), x.rows); err != nil {
			return err
		}
		if err := link.Send(ctx, n, x.rows); err != nil {
			return err
		}
	}
	return nil
}

// Wait implements Exchange.
func (x *HostExchange) Wait(ctx context.Context, n ExchangeNumber) error {
	for side, link := range x.links {
		if link == nil {
			continue
		}
		if err := link.Recv(ctx, n, x.rows); err != nil {
			return err
		}
		if err := x.backend.SetHalo(ctx, Side(side), x.rows); err != nil {
			return err
		}
	}
	return nil
}
