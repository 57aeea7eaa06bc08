package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/solver"
)

// way moves the rows of one side. Both calls put work into the backend's fast stream; n is the exchange's number.
type way interface {
	post(ctx context.Context, n solver.ExchangeNumber) error
	wait(ctx context.Context, n solver.ExchangeNumber) error
	Close() error
}

// Exchange implements solver.Exchange for a Backend. Each side has a way of its own, into a peer's memory or over a
// link through the host; a rank that is its own neighbour, or has its GPU to itself, serves both sides at once.
type Exchange struct {
	backend *Backend
	ways    []way
}

// NewExchange exchanges the halos of b: within the device if the rank is its own neighbour, through peers where they
// are not nil, else over links.
func NewExchange(b *Backend, self bool, peers [2]*Peer, links [2]solver.RowLink) (*Exchange, error) {
	x := &Exchange{backend: b}
	b.whole = 2 // rows reach peers sooner than edges are swept on their own, most of which is filling pipelines
	if self {
		b.whole = 1 // nobody waits for the edges
	}
	for side, has := range b.layout.Neighbour {
		side := solver.Side(side)
		switch {
		case !has, self:
		case peers[side] != nil:
			b.peers = append(b.peers, peers[side])
			if !b.options.Sole {
				x.ways = append(x.ways, peers[side])
			}
		case links[side] != nil:
			b.whole = math.MaxInt
			x.ways = append(x.ways, newHostWay(b, side, links[side]))
		default:
			return nil, fmt.Errorf("cuda exchange: no way to the neighbour at the %v side", side)
		}
	}
	if self && b.layout.Neighbour[solver.Top] || b.options.Sole && len(b.peers) > 0 {
		var err error
		if b.direct, err = newDirect(b); err != nil {
			return nil, err
		}
		x.ways = append(x.ways, b.direct)
	}
	return x, nil
}

// Post implements solver.Exchange.
func (x *Exchange) Post(ctx context.Context, n solver.ExchangeNumber) error {
	for _, w := range x.ways {
		if err := w.post(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Wait implements solver.Exchange.
func (x *Exchange) Wait(ctx context.Context, n solver.ExchangeNumber) error {
	for _, w := range x.ways {
		if err := w.wait(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the exchange. No rank may write to another's memory any more: a barrier comes before it.
func (x *Exchange) Close() error {
	errs := []error{x.backend.release()} // after a failure a stream may wait for a neighbour
	for _, w := range x.ways {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// hostWay goes over a link through the host. Rows take longer there than a pass does, so they go and come beside the
// other side's, and beside the interior, which is launched after post.
type hostWay struct {
	*Backend
	side       solver.Side
	link       solver.RowLink
	edge, halo []byte     // rows to send and to receive, of the link from post to wait
	done       chan error // what came of it
}

func newHostWay(b *Backend, side solver.Side, link solver.RowLink) *hostWay {
	bytes := b.layout.Depth * b.layout.Mesh.RowBytes()
	return &hostWay{b, side, link, make([]byte, bytes), make([]byte, bytes), make(chan error, 1)}
}

func (w *hostWay) post(ctx context.Context, n solver.ExchangeNumber) error {
	if err := w.CopyEdge(ctx, w.side, w.edge); err != nil {
		return err
	}
	go func() {
		err := w.link.Send(ctx, n, w.edge)
		if err == nil {
			err = w.link.Recv(ctx, n, w.halo)
		}
		w.done <- err
	}()
	return nil
}

func (w *hostWay) wait(ctx context.Context, _ solver.ExchangeNumber) error {
	if err := <-w.done; err != nil {
		return err
	}
	return w.SetHalo(ctx, w.side, w.halo)
}

func (w *hostWay) Close() error { return nil }

var _ solver.Exchange = (*Exchange)(nil)
