package cuda

import (
	_ "embed"
	"errors"

	"jacobi/cuda/driver"
)

// The kernels that move rows between windows, as those in kernel.go.
var (
	//go:embed kernels/zone.ptx.gz
	zonePTX []byte
	//go:embed kernels/zone_90.cubin.gz
	zone90 []byte
)

const (
	mostMoves   = 8 // of a launch
	moveThreads = 256
	moveBlocks  = 64 // of a move: enough to saturate the links between two GPUs
	moveUnit    = 16 // bytes
)

// move is rows in one piece: struct Move in kernels/zone.cu.
type move struct {
	from, to, word, blocks driver.DevicePtr
	units                  uint32
	_                      uint32
}

// moves is the argument of push_zones and take_zone: struct Moves.
type moves struct {
	moves  [mostMoves]move
	number uint32
	blocks uint32
}

// moveKernels moves rows between windows by kernels that wait, of a rank that has its GPU to itself.
type moveKernels struct {
	module             *driver.Module
	push, take         *driver.Function
	pushArg, takeArg   *moves
	pushArgs, takeArgs *driver.Args
}

func newMoveKernels(d *device) (*moveKernels, error) {
	image := zonePTX
	if hopper(d.gpu) {
		image = zone90
	}
	k := &moveKernels{pushArg: new(moves), takeArg: new(moves)}
	var err error
	if k.module, err = d.context.Load(image); err != nil {
		return nil, err
	}
	if k.push, err = k.module.Function("push_zones"); err != nil {
		return nil, err
	}
	if k.take, err = k.module.Function("take_zone"); err != nil {
		return nil, err
	}
	if k.pushArgs, err = k.push.Args(k.pushArg); err != nil {
		return nil, err
	}
	k.takeArgs, err = k.take.Args(k.takeArg)
	return k, err
}

// write implements rowMover.
func (k *moveKernels) write(s *driver.Stream, n uint32, all []move) error {
	return launchMoves(s, k.push, k.pushArgs, k.pushArg, n, all)
}

// read implements rowMover.
func (k *moveKernels) read(s *driver.Stream, n uint32, all []move) error {
	return launchMoves(s, k.take, k.takeArgs, k.takeArg, n, all)
}

// launchMoves launches a kernel for at most mostMoves moves at a time.
func launchMoves(s *driver.Stream, f *driver.Function, args *driver.Args, a *moves, n uint32, all []move) error {
	for len(all) > 0 {
		*a = moves{number: n, blocks: 1}
		count := copy(a.moves[:], all)
		for _, m := range all[:count] {
			a.blocks = max(a.blocks, min(moveBlocks, (m.units+moveThreads-1)/moveThreads))
		}
		err := f.Launch(s, driver.Dim{X: count * int(a.blocks)}, driver.Dim{X: moveThreads}, 0, args)
		if err != nil {
			return err
		}
		all = all[count:]
	}
	return nil
}

// rowMover moves rows between windows in a stream. n is the number of the exchange or gather.
type rowMover interface {
	// write writes rows into the windows of other ranks and then sets their words to n.
	write(s *driver.Stream, n uint32, all []move) error
	// read waits until the own words have reached n, and copies rows out of the own window.
	read(s *driver.Stream, n uint32, all []move) error
}

// moveCopies moves rows by copies and memory operations of the stream: no kernel waits, so ranks may share a GPU.
type moveCopies struct{}

func (moveCopies) write(s *driver.Stream, n uint32, all []move) error {
	for _, m := range all {
		if err := errors.Join(m.copy(s), s.WriteValue(m.word, n)); err != nil {
			return err
		}
	}
	return nil
}

func (moveCopies) read(s *driver.Stream, n uint32, all []move) error {
	for _, m := range all {
		if err := errors.Join(s.WaitValue(m.word, n), m.copy(s)); err != nil {
			return err
		}
	}
	return nil
}

func (m move) copy(s *driver.Stream) error {
	if m.units == 0 {
		return nil
	}
	return s.CopyOnDevice(m.to, m.from, moveUnit*int(m.units))
}
