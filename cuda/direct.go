package cuda

import (
	"context"
	"errors"
	"unsafe"

	"jacobi/cuda/driver"
)

// direct is the way to all peers of a rank that has its GPU to itself: one kernel writes the rows of both sides, one waits for
// both, see kernels/exchange.cu.
type direct struct {
	*Backend
	push, await         *driver.Function
	pushArg             *push
	awaitArg            *await
	pushArgs, awaitArgs *driver.Args
}

// push is the argument of push_rows, laid out as struct Push in kernels/exchange.cu.
type push struct {
	sides  [2]pushSide
	units  uint32 // of 16 bytes, a side
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

var (
	_ [0]struct{} = [unsafe.Sizeof(push{}) - 88]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(await{}) - 24]struct{}{}
)

// How a push is divided: enough blocks a side to fill the links between two GPUs.
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

func (d *direct) post(_ context.Context, block uint64) error {
	a := push{number: uint32(block), units: uint32(d.layout.Depth * d.next.pitch / 16)}
	for _, p := range d.peers {
		p.posted = block
		s := pushSide{came: p.words + cameAt(p.side.Opposite()), blocks: d.flags + countAt(p.side)}
		s.to, s.from = p.rows()
		if p.deep() {
			s.room = d.flags + roomAt(p.side)
		}
		a.sides[p.side] = s
	}
	*d.pushArg = a
	return d.push.Launch(d.fast, driver.Dim{X: pushBlocks, Y: 2}, driver.Dim{X: pushThreads}, 0, d.pushArgs)
}

func (d *direct) wait(_ context.Context, block uint64) error {
	a := await{number: uint32(block)}
	for _, p := range d.peers {
		a.came[p.side] = d.flags + cameAt(p.side)
	}
	*d.awaitArg = a
	return d.await.Launch(d.fast, driver.Dim{}, driver.Dim{X: 32}, 0, d.awaitArgs)
}

func (d *direct) Close() error {
	var errs []error
	for _, p := range d.peers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
