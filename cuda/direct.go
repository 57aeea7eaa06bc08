package cuda

import (
	"context"
	"errors"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// direct is the path on which kernels write rows: into the memory of peers, if this rank has its GPU to itself, so that
// a kernel may wait for neighbours; or into the rank's own halos, if it is its own neighbour. The kernel of a pass of
// several sweeps waits for halos and hands rows on itself. For a pass of one sweep, one more kernel writes the rows of
// both sides and another waits for both halos. See kernels/exchange.cu.
type direct struct {
	*Backend
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

func newDirect(b *Backend) (*direct, error) {
	d := &direct{Backend: b, pushArg: new(push), awaitArg: new(await)}
	var err error
	if d.push, err = b.module.Function("push_rows"); err != nil {
		return nil, err
	}
	if d.await, err = b.module.Function("await_rows"); err != nil {
		return nil, err
	}
	if d.pushArgs, err = d.push.Args(d.pushArg); err != nil {
		return nil, err
	}
	d.awaitArgs, err = d.await.Args(d.awaitArg)
	return d, err
}

// sides returns the addresses of the edges of next and of the halos that they fill.
func (d *direct) sides() (sides [2]pushSide) {
	if len(d.peers) == 0 {
		for side := range sides {
			s := solver.Side(side)
			sides[side] = pushSide{from: d.next.at(d.layout.Edge(s).Lo), to: d.next.at(d.layout.Halo(s.Opposite()).Lo)}
		}
		return sides
	}
	for _, p := range d.peers {
		s := &sides[p.side]
		s.to, s.from = p.rows()
		s.came, s.blocks = p.words+cameAt(p.side.Opposite()), d.flags+countAt(p.side)
		if p.deep() {
			s.room = d.flags + roomAt(p.side)
		}
	}
	return sides
}

// fuse makes a pass of several sweeps wait for the halos of now and, before an exchange, hand on the edges of next.
func (d *direct) fuse(p *pass, exchange bool) {
	if d.awaited > 0 {
		for _, peer := range d.peers {
			p.sides[peer.side].came = d.flags + cameAt(peer.side)
		}
		p.awaited, d.awaited = uint32(d.awaited), 0
	}
	if !exchange || d.layout.Depth > d.maxSweeps() { // a halo deeper than a pass may not be free yet
		return
	}
	for side, s := range d.sides() {
		p.sides[side].to, p.sides[side].theirs, p.sides[side].rows = s.to, s.came, s.blocks
	}
	d.handed = d.posted + 1
	p.posted, p.depth = uint32(d.handed), int32(d.layout.Depth)
}

func (d *direct) post(_ context.Context, n solver.ExchangeNumber) error {
	d.posted = n
	if d.handed == n {
		return nil
	}
	*d.pushArg = push{sides: d.sides(), number: uint32(n), units: uint32(d.layout.Depth * d.next.pitch / 16)}
	return d.push.Launch(d.fast, driver.Dim{X: pushBlocks, Y: 2}, driver.Dim{X: pushThreads}, 0, d.pushArgs)
}

func (d *direct) wait(_ context.Context, n solver.ExchangeNumber) error {
	if len(d.peers) > 0 {
		d.awaited = n
	}
	return nil
}

// settle makes the fast stream wait for rows that are still awaited.
func (d *direct) settle() error {
	if d == nil || d.awaited == 0 {
		return nil
	}
	a := await{number: uint32(d.awaited)}
	for _, p := range d.peers {
		a.came[p.side] = d.flags + cameAt(p.side)
	}
	*d.awaitArg, d.awaited = a, 0
	return d.await.Launch(d.fast, driver.Dim{}, driver.Dim{X: 32}, 0, d.awaitArgs)
}

func (d *direct) Close() error {
	var errs []error
	for _, p := range d.peers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
