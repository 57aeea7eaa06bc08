package cuda

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// way moves the rows of one side. Both calls put work into the backend's fast stream; block is the exchange's number.
type way interface {
	post(ctx context.Context, block uint64) error
	wait(ctx context.Context, block uint64) error
	Close() error
}

// Exchange implements solver.Exchange for a Backend. Each side has a way of its own: within the device where a rank is its
// own neighbour, into a peer's memory, or over a link through the host.
type Exchange struct {
	backend *Backend
	ways    []way
	hosts   []*hostWay // those of the ways that need the host
}

// NewExchange exchanges the halos of b: within the device if the rank is its own neighbour, through peers where they are not
// nil, else over links.
func NewExchange(b *Backend, self bool, peers [2]*Peer, links [2]solver.RowLink) (*Exchange, error) {
	x := &Exchange{backend: b}
	for side, has := range b.layout.Neighbour {
		side := solver.Side(side)
		switch {
		case !has:
		case self:
			x.ways = append(x.ways, &within{b, side})
		case peers[side] != nil:
			x.ways = append(x.ways, peers[side])
		case links[side] != nil:
			w, err := newHostWay(b, side, links[side])
			if err != nil {
				return nil, fmt.Errorf("cuda exchange: %w", err)
			}
			x.ways = append(x.ways, w)
			x.hosts = append(x.hosts, w)
		default:
			return nil, fmt.Errorf("cuda exchange: no way to the neighbour at the %v side", side)
		}
	}
	b.alone = self // nobody waits for edges
	return x, nil
}

// Post implements solver.Exchange.
func (x *Exchange) Post(ctx context.Context, block uint64) error {
	for _, w := range x.ways {
		if err := w.post(ctx, block); err != nil {
			return err
		}
	}
	return nil
}

// Wait implements solver.Exchange.
func (x *Exchange) Wait(ctx context.Context, block uint64) error {
	if err := x.carry(ctx, block); err != nil {
		return err
	}
	for _, w := range x.ways {
		if err := w.wait(ctx, block); err != nil {
			return err
		}
	}
	return nil
}

// carry does the host's part, of both sides at once.
func (x *Exchange) carry(ctx context.Context, block uint64) error {
	if len(x.hosts) == 0 {
		return nil
	}
	for _, w := range x.hosts {
		if err := x.backend.await(ctx, w.copied); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range x.hosts {
		g.Go(func() error { return w.carry(ctx, block) })
	}
	return g.Wait()
}

// Close ends the exchange. No rank may write to another's memory any more: a barrier comes before it.
func (x *Exchange) Close() error {
	errs := []error{x.backend.release()} // after a failure a stream may wait for a neighbour
	for _, w := range x.ways {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// within is the way of a rank that is its own neighbour.
type within struct {
	*Backend
	side solver.Side
}

func (w *within) post(context.Context, uint64) error {
	from, to := w.layout.Edge(w.side.Opposite()), w.layout.Halo(w.side)
	return w.fast.CopyOnDevice(w.next.at(to.Lo), w.next.at(from.Lo), from.Rows()*w.next.pitch)
}

func (w *within) wait(context.Context, uint64) error { return nil } // the stream keeps the order

func (w *within) Close() error { return nil }

// hostWay goes over a link through pinned memory of the host. The rows leave the device behind the edges; the host takes them
// to the link in Wait, when the interior is under way.
type hostWay struct {
	*Backend
	side    solver.Side
	link    solver.RowLink
	out, in *driver.HostMemory // Depth dense rows each
	copied  *driver.Event      // out is filled
}

func newHostWay(b *Backend, side solver.Side, link solver.RowLink) (*hostWay, error) {
	w := &hostWay{Backend: b, side: side, link: link}
	n := b.layout.Depth * b.layout.Mesh.RowBytes()
	var err error
	for _, m := range []**driver.HostMemory{&w.out, &w.in} {
		if *m, err = b.context.AllocHost(n); err != nil {
			return nil, err
		}
		b.onClose((*m).Free)
	}
	if w.copied, err = b.context.NewEvent(false); err != nil {
		return nil, err
	}
	b.onClose(w.copied.Close)
	return w, nil
}

func (w *hostWay) post(context.Context, uint64) error {
	from, width := w.layout.Edge(w.side), w.layout.Mesh.RowBytes()
	if err := w.fast.Copy2D(w.out.Rows(0, width), w.next.at(from.Lo).Rows(w.next.pitch), width, from.Rows()); err != nil {
		return err
	}
	return w.copied.Record(w.fast)
}

// carry gives the neighbour this rank's rows and takes the neighbour's. It needs no device.
func (w *hostWay) carry(ctx context.Context, block uint64) error {
	if err := w.link.Send(ctx, block, w.out.Bytes()); err != nil {
		return err
	}
	return w.link.Recv(ctx, block, w.in.Bytes())
}

// wait puts the rows that carry has brought into the stream. The next carry does not overwrite them before they are there: it
// comes behind edges that read them.
func (w *hostWay) wait(context.Context, uint64) error {
	to, width := w.layout.Halo(w.side), w.layout.Mesh.RowBytes()
	return w.fast.Copy2D(w.now.at(to.Lo).Rows(w.now.pitch), w.in.Rows(0, width), width, to.Rows())
}

func (w *hostWay) Close() error { return nil } // the backend closes what it has opened

var _ solver.Exchange = (*Exchange)(nil)
