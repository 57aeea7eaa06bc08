package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/solver"
)

// Exchange implements solver.Exchange for a Backend. Each side has a path of its own, into a peer's memory or over a
// link through the host. If the rank is its own neighbour, or has its GPU to itself, one path serves both sides.
type Exchange struct {
	calls  solver.ExchangeCalls
	order  *solver.Calls // of the backend
	dev    *device
	paths  []solver.Exchange
	peers  []*Peer // neighbours that write into this rank's memory
	direct *direct // nil if kernels do not move rows
	loads  uint32  // fields loaded so far
}

// NewExchange returns an exchange of the halos of b: within the device if the rank is its own neighbour, through peers
// where they are not nil, and over links elsewhere.
func NewExchange(b *Backend, self bool, peers [2]*Peer, links [2]solver.RowLink) (*Exchange, error) {
	x := &Exchange{order: &b.calls, dev: b.dev}
	sweepAllFrom := 2 // sweeping edges separately, which is mostly filling pipelines, takes longer than sending rows
	if self {
		sweepAllFrom = 1 // no other rank waits for the edges
	}
	for side, has := range b.dev.layout.Neighbour {
		switch {
		case !has, self:
		case peers[side] != nil:
			x.peers = append(x.peers, peers[side])
			if !b.sole {
				x.paths = append(x.paths, &peerCopy{b.dev, peers[side]})
			}
		case links[side] != nil:
			sweepAllFrom = math.MaxInt
			p, err := overLink(b, solver.Side(side), links[side])
			if err != nil {
				return nil, err
			}
			x.paths = append(x.paths, p)
		default:
			return nil, fmt.Errorf("cuda exchange: no way to the neighbour at the %v side", solver.Side(side))
		}
	}
	if self && b.dev.layout.Neighbour[solver.Top] || b.sole && len(x.peers) > 0 {
		var err error
		if x.direct, err = newDirect(b.dev, x.peers); err != nil {
			return nil, err
		}
		x.paths = append(x.paths, x.direct)
	}
	b.connect(x, sweepAllFrom)
	return x, nil
}

// overLink returns the path of one side over a link.
func overLink(b *Backend, side solver.Side, link solver.RowLink) (solver.Exchange, error) {
	l, links := b.dev.layout, [2]solver.RowLink{}
	l.Neighbour = [2]bool{}
	l.Neighbour[side], links[side] = true, link
	return solver.NewOverlappedExchange(b, l, links)
}

// Post implements solver.Exchange.
func (x *Exchange) Post(ctx context.Context, n solver.ExchangeNumber) error {
	if err := x.calls.Post(n); err != nil {
		return err
	}
	if err := x.order.Post(); err != nil {
		return fmt.Errorf("exchange %d: %w", n, err)
	}
	for _, p := range x.paths {
		if err := p.Post(ctx, n); err != nil {
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
	if err := x.order.Wait(); err != nil {
		return fmt.Errorf("exchange %d: %w", n, err)
	}
	for _, p := range x.paths {
		if err := p.Wait(ctx, n); err != nil {
			return err
		}
	}
	x.calls.Done()
	return nil
}

// beforeEdges implements mover.
func (x *Exchange) beforeEdges() error {
	if !x.dev.deep() {
		return nil
	}
	for _, p := range x.peers {
		if err := x.dev.fast.WriteValue(p.room(), uint32(x.calls.Next())); err != nil {
			return err
		}
	}
	return nil
}

// inKernel implements mover.
func (x *Exchange) inKernel(exchange bool) (h halos, ok bool) {
	if x.direct == nil {
		return halos{}, false
	}
	if !exchange {
		return x.direct.inKernel(0), true
	}
	return x.direct.inKernel(x.calls.Next()), true
}

// settle implements mover.
func (x *Exchange) settle() error {
	if x.direct == nil {
		return nil
	}
	return x.direct.settle()
}

// loaded implements mover. It only queues: neighbours may take long, or fail.
func (x *Exchange) loaded() error {
	x.loads++
	for _, p := range x.peers {
		if err := x.dev.fast.WriteValue(p.loaded(), x.loads); err != nil {
			return err
		}
	}
	for _, p := range x.peers {
		if err := x.dev.fast.WaitValue(x.dev.flags.loaded(p.side), x.loads); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the exchange. No rank may write to another's memory any more, so a barrier must come before it.
func (x *Exchange) Close() error {
	errs := []error{x.dev.release()} // after a failure a stream may wait for a neighbour
	for _, p := range x.peers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

var (
	_ solver.Exchange = (*Exchange)(nil)
	_ mover           = (*Exchange)(nil)
)
