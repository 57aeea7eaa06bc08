package solver

import (
	"context"
	"fmt"
)

// RowLink carries rows between one side of this rank and the facing side of its neighbour there. Rows given to
// Send(block) on one end are what Recv(block) yields on the other.
type RowLink interface {
	Send(ctx context.Context, block uint64, rows []byte) error
	Recv(ctx context.Context, block uint64, rows []byte) error
}

// HostExchange is an Exchange through the host's memory, over one link a side.
type HostExchange struct {
	backend Backend
	links   [2]RowLink // by Side; nil where the mesh ends
	rows    []byte     // Depth dense rows
}

// NewHostExchange exchanges the halos of a backend with the given layout over links, by Side. A side has a link
// exactly if the layout has a neighbour there.
func NewHostExchange(b Backend, l Layout, links [2]RowLink) (*HostExchange, error) {
	for side, link := range links {
		if (link != nil) != l.Neighbour[side] {
			return nil, fmt.Errorf("exchange: %v side: link %v, neighbour %v", Side(side), link != nil, l.Neighbour[side])
		}
	}
	return &HostExchange{backend: b, links: links, rows: make([]byte, l.Depth*l.Mesh.RowBytes())}, nil
}

// Post implements Exchange.
func (x *HostExchange) Post(ctx context.Context, block uint64) error {
	for side, link := range x.links {
		if link == nil {
			continue
		}
		if err := x.backend.CopyEdge(ctx, Side(side), x.rows); err != nil {
			return err
		}
		if err := link.Send(ctx, block, x.rows); err != nil {
			return err
		}
	}
	return nil
}

// Wait implements Exchange.
func (x *HostExchange) Wait(ctx context.Context, block uint64) error {
	for side, link := range x.links {
		if link == nil {
			continue
		}
		if err := link.Recv(ctx, block, x.rows); err != nil {
			return err
		}
		if err := x.backend.SetHalo(ctx, Side(side), x.rows); err != nil {
			return err
		}
	}
	return nil
}
