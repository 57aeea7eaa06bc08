package cuda

import (
	"context"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// peerStores is the path on which kernels store rows: into the memory of peers, if this rank has its GPU to itself, so
// that a kernel may wait for neighbours; or into the rank's own halos, if it is its own neighbour. The kernel of a pass
// of several sweeps waits for halos and hands rows on itself. For a pass of one sweep, one more kernel writes the rows
// of both sides and another waits for both halos. See kernels/exchange.cu.
type peerStores struct {
	dev                 *device
	peers               []*peer // none if the rank is its own neighbour
	push, await         *driver.Function
	pushArg             *push
	awaitArg            *await
	pushArgs, awaitArgs *driver.Args

	handed  solver.ExchangeNumber // the newest exchange whose rows a pass hands on
	awaited solver.ExchangeNumber // the exchange whose rows no work in the streams waits for yet; 0: none
}

// push is the argument of push_rows, laid out as struct Push in kernels/exchange.cu.
type push struct {
	sides  [2]pushSide
	units  uint32 // of 16 bytes, for each side
	number uint32
}

type pushSide struct {
	from, to, came, room, blocks driver.DevicePtr
}

// await is the argument of await_rows, laid out as struct Await in kernels/exchange.cu.
type await struct {
	came   [2]driver.DevicePtr
	number uint32
	_      uint32
}

// A push has enough blocks for each side to saturate the links between two GPUs.
const (
	pushThreads = 256
	pushBlocks  = 32
)

func newPeerStores(dev *device, peers []*peer) (*peerStores, error) {
	d := &peerStores{dev: dev, peers: peers, pushArg: new(push), awaitArg: new(await)}
	var err error
	if d.push, err = dev.module.Function("push_rows"); err != nil {
		return nil, err
	}
	if d.await, err = dev.module.Function("await_rows"); err != nil {
		return nil, err
	}
	if d.pushArgs, err = d.push.Args(d.pushArg); err != nil {
		return nil, err
	}
	d.awaitArgs, err = d.await.Args(d.awaitArg)
	return d, err
}

// sides returns the addresses of the edges of next and of the halos that they fill.
func (d *peerStores) sides() (sides [2]pushSide) {
	next, layout := d.dev.next, d.dev.layout
	for side := range sides {
		s := solver.Side(side)
		if len(d.peers) == 0 {
			sides[side] = pushSide{from: next.at(layout.Edge(s).Lo), to: next.at(layout.Halo(s.Opposite()).Lo)}
		}
	}
	for _, p := range d.peers {
		s := &sides[p.side]
		s.from, s.to = next.at(layout.Edge(p.side).Lo), p.halo(next.index)
		s.came, s.blocks = p.came(), d.dev.flags.count(p.side)
		if d.dev.deep() {
			s.room = d.dev.flags.room(p.side)
		}
	}
	return sides
}

// inKernel returns what the kernel of a pass of several sweeps does with halos: it waits for those of now and hands the
// edges of next on for exchange n. n is 0 if no exchange follows.
func (d *peerStores) inKernel(n solver.ExchangeNumber) (h halos) {
	if h.awaited = d.awaited; h.awaited > 0 {
		for _, p := range d.peers {
			h.sides[p.side].came = d.dev.flags.came(p.side)
		}
		d.awaited = 0
	}
	if n == 0 || d.dev.deep() { // a halo deeper than a pass may not be free yet
		return h
	}
	for side, s := range d.sides() {
		h.sides[side].to, h.sides[side].theirs, h.sides[side].rows = s.to, s.came, s.blocks
	}
	h.posted, d.handed = n, n
	return h
}

// post implements path.
func (d *peerStores) post(_ context.Context, n solver.ExchangeNumber) error {
	if d.handed == n {
		return nil
	}
	units := uint32(d.dev.layout.Depth * d.dev.next.pitch / 16)
	*d.pushArg = push{sides: d.sides(), number: uint32(n), units: units}
	defer d.dev.times.begin(d.dev.fast, solver.Work{Kind: solver.WorkHandOn, Number: uint64(n),
		Rows: d.dev.layout.Depth}).end()
	return d.push.Launch(d.dev.fast, driver.Dim{X: pushBlocks, Y: 2}, driver.Dim{X: pushThreads}, 0, d.pushArgs)
}

// wait implements path. It leaves the waiting to the next work that reads halos.
func (d *peerStores) wait(_ context.Context, n solver.ExchangeNumber) error {
	if len(d.peers) > 0 {
		d.awaited = n
	}
	return nil
}

// settle makes the fast stream wait for rows that are still awaited.
func (d *peerStores) settle() error {
	if d.awaited == 0 {
		return nil
	}
	defer d.dev.times.begin(d.dev.fast, solver.Work{Kind: solver.WorkAwait, Number: uint64(d.awaited)}).end()
	a := await{number: uint32(d.awaited)}
	for _, p := range d.peers {
		a.came[p.side] = d.dev.flags.came(p.side)
	}
	*d.awaitArg, d.awaited = a, 0
	return d.await.Launch(d.dev.fast, driver.Dim{}, driver.Dim{X: 32}, 0, d.awaitArgs)
}
