package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
)

// The exchanges of GPUs pass the conformance suite, with all ranks in this process: by kernels, with a GPU for each
// rank; by copies, with one GPU for all; over links; and over a link on one side and a peer on the other. A rank that
// is alone exchanges within its device, except over links.
func TestExchange(t *testing.T) {
	d := need(t)
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []way{
		{name: "kernels", sole: true, linked: func(int, solver.Side) bool { return false }},
		{name: "copies", linked: func(int, solver.Side) bool { return false }},
		{name: "links", linked: func(int, solver.Side) bool { return true }, apart: true},
		{name: "copies and links", linked: betweenTheFirstTwo},
		{name: "kernels and links", sole: true, linked: betweenTheFirstTwo},
	} {
		t.Run(w.name, func(t *testing.T) {
			exchangetest.Run(t, func(t *testing.T, layouts []solver.Layout) exchangetest.Open {
				if w.sole && len(layouts) > len(devices) {
					t.Skipf("NOT RUN, %d GPUs: %s needs one for each rank", len(devices), t.Name())
				}
				o := opening{way: w, driver: d, layouts: layouts, links: exchangetest.Links(layouts),
					backends: make([]*Backend, len(layouts))}
				o.opened.Add(len(layouts))
				return o.open
			})
		})
	}
}

// betweenTheFirstTwo reports whether a side lies at the end that ranks 0 and 1 have in common below rank 0.
func betweenTheFirstTwo(rank int, side solver.Side) bool {
	return rank == 0 && side == solver.Bottom || rank == 1 && side == solver.Top
}

// way is a way in which ranks exchange halos.
type way struct {
	name   string
	sole   bool
	linked func(rank int, side solver.Side) bool // the side has a link, not a peer
	apart  bool                                  // a rank that is its own neighbour uses a link too
}

// opening is a run whose ranks are being opened.
type opening struct {
	way
	driver   *driver.Driver
	layouts  []solver.Layout
	links    [][2]solver.RowLink
	backends []*Backend
	opened   sync.WaitGroup // the backends
}

// isLinked reports whether a side of a rank has a link. Two ranks of a ring are neighbours at both sides, in one way.
func (o *opening) isLinked(rank int, side solver.Side) bool {
	return o.linked(rank, side) || len(o.layouts) == 2 && o.linked(rank, side.Opposite())
}

// open implements exchangetest.Open. Neighbours of one process cannot map each other's memory by CUDA IPC and need not.
func (o *opening) open(_ context.Context, rank int) (r exchangetest.Rank, err error) {
	l := o.layouts[rank]
	options := Options{Sole: o.sole, Timeout: 20 * time.Second}
	if o.sole {
		options.Device = rank
	}
	b, err := New(o.driver, l, options)
	if err == nil {
		r.Backend = b
		if err = b.OpenWindow(2); err == nil {
			o.backends[rank] = b
		}
	}
	o.opened.Done()
	o.opened.Wait()
	if err != nil {
		return r, err
	}
	neighbours, links := [2]*Window{}, [2]solver.RowLink{}
	self := len(o.layouts) == 1 && !o.apart
	for i, has := range l.Neighbour {
		side := solver.Side(i)
		if !has || self {
			continue
		}
		if o.isLinked(rank, side) {
			links[side] = o.links[rank][side]
			continue
		}
		their := o.backends[exchangetest.Neighbour(l.Mesh, len(o.layouts), rank, side)]
		if their == nil {
			return r, fmt.Errorf("the neighbour at the %v did not open", side)
		}
		if o.sole && their != b { // another test may hold the same contexts
			err := b.dev.context.EnablePeer(their.dev.context)
			if err != nil && !errors.Is(err, driver.ErrPeerAccessEnabled) {
				return r, err
			}
		}
		neighbours[side] = &Window{rows: their.dev.now.rows, memory: []driver.DevicePtr{their.dev.now.base,
			their.dev.next.base, driver.DevicePtr(their.dev.flags)}}
	}
	x, err := NewExchange(b, self, neighbours, links)
	if err != nil {
		return r, err
	}
	r.Exchange = x
	r.Halo = func(ctx context.Context, side solver.Side, dst []byte) error { return halo(ctx, b, x, side, dst) }
	return r, nil
}

// halo copies a halo of now to dst. If the next pass is to wait for it, halo waits by itself, and leaves the pass to
// wait as well.
func halo(ctx context.Context, b *Backend, x *Exchange, side solver.Side, dst []byte) error {
	d := b.dev
	if err := d.awaitAll(ctx, d.fast); err != nil {
		return err
	}
	for x.stores != nil && x.stores.awaited > 0 && hasPeer(x, side) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := d.slow.CopyFromDevice(d.staging, 0, d.flags.came(side), 4); err != nil {
			return err
		}
		if err := d.awaitAll(ctx, d.slow); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(d.staging.Bytes()) >= uint32(x.stores.awaited) {
			break
		}
	}
	return d.copyOut(ctx, d.slow, d.now, d.layout.Halo(side), dst)
}

func hasPeer(x *Exchange, side solver.Side) bool {
	for _, p := range x.peers {
		if p.side == side {
			return true
		}
	}
	return false
}
