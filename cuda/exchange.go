package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/solver"
)

// path moves the rows of one side or of both. Both calls put work into the backend's fast stream; n is the number of
// the exchange.
type path interface {
	post(ctx context.Context, n solver.ExchangeNumber) error
	wait(ctx context.Context, n solver.ExchangeNumber) error
	Close() error
}

// Exchange implements solver.Exchange for a Backend. Each side has a path of its own, into a peer's memory or over a
// link through the host. If the rank is its own neighbour, or has its GPU to itself, one path serves both sides.
type Exchange struct {
	calls   solver.ExchangeCalls
	backend *Backend
	paths   []path
}

// NewExchange returns an exchange of the halos of b: within the device if the rank is its own neighbour, through peers
// where they are not nil, and over links elsewhere.
func NewExchange(b *Backend, self bool, peers [2]*Peer, links [2]solver.RowLink) (*Exchange, error) {
	x := &Exchange{backend: b}
	b.sweepAllFrom = 2 // sweeping edges separately, which is mostly filling pipelines, takes longer than sending rows
	if self {
		b.sweepAllFrom = 1 // no other rank waits for the edges
	}
	for side, has := range b.layout.Neighbour {
		side := solver.Side(side)
		switch {
		case !has, self:
		case peers[side] != nil:
			b.peers = append(b.peers, peers[side])
			if !b.options.Sole {
				x.paths = append(x.paths, peers[side])
			}
		case links[side] != nil:
			b.sweepAllFrom = math.MaxInt
			x.paths = append(x.paths, newHostPath(b, side, links[side]))
		default:
			return nil, fmt.Errorf("cuda exchange: no way to the neighbour at the %v side", side)
		}
	}
	if self && b.layout.Neighbour[solver.Top] || b.options.Sole && len(b.peers) > 0 {
		var err error
		if b.direct, err = newDirect(b); err != nil {
			return nil, err
		}
		x.paths = append(x.paths, b.direct)
	}
	return x, nil
}

// Post implements solver.Exchange.
func (x *Exchange) Post(ctx context.Context, n solver.ExchangeNumber) error {
	if err := x.calls.Post(n); err != nil {
		return err
	}
	if err := x.backend.calls.Post(); err != nil {
		return fmt.Errorf("exchange %d: %w", n, err)
	}
	for _, p := range x.paths {
		if err := p.post(ctx, n); err != nil {
			return err
		}
	}
	x.calls.Done()
	return nil
}

// Wait implements solver.Exchange.
func (x *Exchange) Wait(ctx context.Context, n solver.ExchangeNumber) error {
	if err := x.calls.Wait(n); err != nil {
		return err
	}
	if err := x.backend.calls.Wait(); err != nil {
		return fmt.Errorf("exchange %d: %w", n, err)
	}
	for _, p := range x.paths {
		if err := p.wait(ctx, n); err != nil {
			return err
		}
	}
	x.calls.Done()
	return nil
}

// Close ends the exchange. No rank may write to another's memory any more, so a barrier must come before it.
func (x *Exchange) Close() error {
	errs := []error{x.backend.release()} // after a failure a stream may wait for a neighbour
	for _, p := range x.paths {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// hostPath moves rows over a link through the host. That takes longer than a pass, so a goroutine sends and receives
// the rows while the other side's rows travel and the interior, which is launched after post, is swept.
type hostPath struct {
	*Backend
	side       solver.Side
	link       solver.RowLink
	edge, halo []byte     // rows to send and to receive; the link's from post to wait
	done       chan error // result of the goroutine
}

func newHostPath(b *Backend, side solver.Side, link solver.RowLink) *hostPath {
	bytes := b.layout.Depth * b.layout.Mesh.RowBytes()
	return &hostPath{b, side, link, make([]byte, bytes), make([]byte, bytes), make(chan error, 1)}
}

func (h *hostPath) post(ctx context.Context, n solver.ExchangeNumber) error {
	if err := h.CopyEdge(ctx, h.side, h.edge); err != nil {
		return err
	}
	go func() {
		err := h.link.Send(ctx, n, h.edge)
		if err == nil {
			err = h.link.Recv(ctx, n, h.halo)
		}
		h.done <- err
	}()
	return nil
}

func (h *hostPath) wait(ctx context.Context, _ solver.ExchangeNumber) error {
	if err := <-h.done; err != nil {
		return err
	}
	return h.SetHalo(ctx, h.side, h.halo)
}

func (h *hostPath) Close() error { return nil }

var _ solver.Exchange = (*Exchange)(nil)
