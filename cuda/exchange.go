package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Exchange implements solver.Exchange for a Backend. Each side has a path of its own, into a peer's memory or over a
// link through the host. If the rank is its own neighbour, or has its GPU to itself, one path serves both sides but for
// links.
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

// awaitRows implements mover.
func (x *Exchange) awaitRows() error {
	if x.stores == nil {
		return nil
	}
	return x.stores.awaitRows()
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

// peerCopy is the path of rows to and from one peer where ranks share GPUs. This rank copies its edge rows into the
// neighbour's halo and then writes the number of the exchange into a word of the neighbour's memory, for which the
// neighbour's stream waits. No kernel waits.
//
// If every pass ends in an exchange, the writer need not ask whether the halo is free: the halo for the rows of
// exchange n+2 was last read by edges that the neighbour swept before it posted exchange n+1, and this rank's stream
// has waited for the rows of exchange n+1. A halo deeper than a pass is read by the passes in between too; each rank
// then tells its neighbours when the halo of its next field has been read for the last time (Exchange.beforeEdges).
type peerCopy struct {
	dev  *device
	peer *peer
}

// post implements path for the peer's side.
func (c *peerCopy) post(_ context.Context, n solver.ExchangeNumber) error {
	d, p := c.dev, c.peer
	if d.deep() {
		if err := d.fast.WaitValue(d.flags.room(p.side), uint32(n)); err != nil {
			return err
		}
	}
	from := d.next.at(d.layout.Edge(p.side).Lo)
	m := d.times.begin(d.fast, solver.Work{Kind: solver.WorkToPeer, Number: uint64(n), Rows: d.layout.Depth})
	if err := d.fast.CopyOnDevice(p.halo(d.next.index), from, d.layout.Depth*d.next.pitch); err != nil {
		return err
	}
	m.end()
	return d.fast.WriteValue(p.came(), uint32(n))
}

// wait implements path for the peer's side.
func (c *peerCopy) wait(_ context.Context, n solver.ExchangeNumber) error {
	defer c.dev.times.begin(c.dev.fast, solver.Work{Kind: solver.WorkAwait, Number: uint64(n)}).end()
	return c.dev.fast.WaitValue(c.dev.flags.came(c.peer.side), uint32(n))
}

// peerStores is the path on which kernels store rows: into the memory of peers, if this rank has its GPU to itself, so
// that a kernel may wait for neighbours; or into the rank's own halos, if it is its own neighbour. The kernel of a pass
// of several sweeps waits for halos and hands rows on itself. For a pass of one sweep, one more kernel writes the rows
// of both sides and another waits for both halos. See kernels/exchange.cu.
type peerStores struct {
	dev         *device
	peers       []*peer // none if the rank is its own neighbour
	push, await call
	pushArg     *push
	awaitArg    *await

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
	if d.push, err = newCall(dev.module, "push_rows", d.pushArg, pushThreads); err != nil {
		return nil, err
	}
	d.await, err = newCall(dev.module, "await_rows", d.awaitArg, warpSize)
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
	return d.push.f.Launch(d.dev.fast, driver.Dim{X: pushBlocks, Y: 2}, driver.Dim{X: pushThreads}, 0, d.push.args)
}

// wait implements path. It leaves the waiting to the next work that reads halos.
func (d *peerStores) wait(_ context.Context, n solver.ExchangeNumber) error {
	if len(d.peers) > 0 {
		d.awaited = n
	}
	return nil
}

// awaitRows makes the fast stream wait for rows that are still awaited.
func (d *peerStores) awaitRows() error {
	if d.awaited == 0 {
		return nil
	}
	defer d.dev.times.begin(d.dev.fast, solver.Work{Kind: solver.WorkAwait, Number: uint64(d.awaited)}).end()
	a := await{number: uint32(d.awaited)}
	for _, p := range d.peers {
		a.came[p.side] = d.dev.flags.came(p.side)
	}
	*d.awaitArg, d.awaited = a, 0
	d.await.blocks = 1
	return d.await.launch(d.dev.fast)
}
