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
	backend *Backend
	dev     *device
	paths   []path
	peers   []*peer // neighbours that write into this rank's memory
	open    windows
	stores  *peerStores // nil if kernels do not move rows
	loads   uint32      // fields loaded so far
	posted  solver.ExchangeNumber
}

// NewExchange returns an exchange of the halos of b: within the device if the rank is its own neighbour, through the
// windows of neighbours where they are not nil, and over links elsewhere.
func NewExchange(b *Backend, self bool, neighbours [2]*Window, links [2]solver.RowLink) (*Exchange, error) {
	x := &Exchange{backend: b, dev: b.dev, open: neighbours[:]}
	sweepAllFrom := 2 // sweeping edges separately, which is mostly filling pipelines, takes longer than sending rows
	if self {
		sweepAllFrom = 1 // no other rank waits for the edges
	}
	for side, has := range b.dev.layout.Neighbour {
		switch {
		case !has, self:
		case neighbours[side] != nil:
			p := newPeer(b.dev, solver.Side(side), neighbours[side])
			x.peers = append(x.peers, p)
			if !b.sole {
				x.paths = append(x.paths, &peerCopy{b.dev, p})
			}
		case links[side] != nil:
			sweepAllFrom = math.MaxInt
			x.paths = append(x.paths, newLinkPath(b, solver.Side(side), links[side]))
		default:
			return nil, fmt.Errorf("cuda exchange: no way to the neighbour at the %v side", solver.Side(side))
		}
	}
	if self && b.dev.layout.Neighbour[solver.Top] || b.sole && len(x.peers) > 0 {
		var err error
		if x.stores, err = newPeerStores(b.dev, x.peers); err != nil {
			return nil, err
		}
		x.paths = append(x.paths, x.stores)
	}
	b.connect(x, sweepAllFrom)
	return x, nil
}

// path moves the rows of exchange n at some sides.
type path interface {
	post(ctx context.Context, n solver.ExchangeNumber) error
	wait(ctx context.Context, n solver.ExchangeNumber) error
}

// linkPath is the path of one side over a link.
type linkPath struct {
	host *solver.HostExchange
	rows solver.HaloRows
}

func newLinkPath(b *Backend, side solver.Side, link solver.RowLink) linkPath {
	var links [2]solver.RowLink
	links[side] = link
	return linkPath{solver.NewHostExchange(links, solver.HostOptions{Background: true}), oneSide{b, side}}
}

func (p linkPath) post(ctx context.Context, _ solver.ExchangeNumber) error {
	return p.host.Post(ctx, p.rows)
}
func (p linkPath) wait(ctx context.Context, _ solver.ExchangeNumber) error {
	return p.host.Wait(ctx, p.rows)
}

// oneSide are rows at one side alone.
type oneSide struct {
	solver.HaloRows
	side solver.Side
}

// HaloBytes implements solver.HaloRows.
func (r oneSide) HaloBytes() (bytes [2]int) {
	bytes[r.side] = r.HaloRows.HaloBytes()[r.side]
	return bytes
}

// Post implements solver.Exchange. The rows are those of the Backend.
func (x *Exchange) Post(ctx context.Context, r solver.HaloRows) error {
	if r != solver.HaloRows(x.backend) {
		return errors.New("cuda exchange: rows of another backend")
	}
	for _, p := range x.paths {
		if err := p.post(ctx, x.posted+1); err != nil {
			return err
		}
	}
	x.posted++
	return nil
}

// Wait implements solver.Exchange.
func (x *Exchange) Wait(ctx context.Context, _ solver.HaloRows) error {
	for _, p := range x.paths {
		if err := p.wait(ctx, x.posted); err != nil {
			return err
		}
	}
	return nil
}

// Gather implements solver.Exchange.
func (*Exchange) Gather(context.Context, solver.BlockRows) error {
	return errors.New("cuda exchange: a backend has no blocks")
}

// beforeEdges implements mover.
func (x *Exchange) beforeEdges() error {
	if !x.dev.deep() {
		return nil
	}
	for _, p := range x.peers {
		if err := x.dev.fast.WriteValue(p.room(), uint32(x.posted+1)); err != nil {
			return err
		}
	}
	return nil
}

// inKernel implements mover.
func (x *Exchange) inKernel(exchange bool) (h halos, ok bool) {
	if x.stores == nil {
		return halos{}, false
	}
	if !exchange {
		return x.stores.inKernel(0), true
	}
	return x.stores.inKernel(x.posted + 1), true
}

// settle implements mover.
func (x *Exchange) settle() error {
	if x.stores == nil {
		return nil
	}
	return x.stores.settle()
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
	return errors.Join(x.dev.release(), x.open.close()) // after a failure a stream may wait for a neighbour
}

var (
	_ solver.Exchange = (*Exchange)(nil)
	_ mover           = (*Exchange)(nil)
)
