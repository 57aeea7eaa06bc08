package cuda

import (
	_ "embed"
	"errors"

	"jacobi/cuda/driver"
)

// The kernels that move rows between zones, as those in kernel.go.
var (
	//go:embed kernels/zone.ptx
	zonePTX []byte
	//go:embed kernels/zone_90.cubin
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

// zoneKernels moves rows between zones by kernels that wait, of a rank that has its GPU to itself.
type zoneKernels struct {
	module             *driver.Module
	push, take         *driver.Function
	pushArg, takeArg   *moves
	pushArgs, takeArgs *driver.Args
}

func newZoneKernels(d *device) (*zoneKernels, error) {
	image := zonePTX
	if hopper(d.gpu) {
		image = zone90
	}
	k := &zoneKernels{pushArg: new(moves), takeArg: new(moves)}
	var err error
	if k.module, err = d.context.Load(image); err != nil {
		return nil, err
	}
	d.onClose(k.module.Close)
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

// write implements zoneMover.
func (k *zoneKernels) write(s *driver.Stream, n uint32, all []move) error {
	return launchMoves(s, k.push, k.pushArgs, k.pushArg, n, all)
}

// read implements zoneMover.
func (k *zoneKernels) read(s *driver.Stream, n uint32, all []move) error {
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

// zoneMover moves rows between zones in a stream. n is the number of the exchange or gather.
type zoneMover interface {
	// write writes rows into the zones of other ranks and then sets their words to n.
	write(s *driver.Stream, n uint32, all []move) error
	// read waits until the own words have reached n, and copies rows out of the zone.
	read(s *driver.Stream, n uint32, all []move) error
}

// zoneCopies moves rows by copies and memory operations of the stream: no kernel waits, so ranks may share a GPU.
type zoneCopies struct{}

func (zoneCopies) write(s *driver.Stream, n uint32, all []move) error {
	for _, m := range all {
		if err := errors.Join(m.copy(s), s.WriteValue(m.word, n)); err != nil {
			return err
		}
	}
	return nil
}

func (zoneCopies) read(s *driver.Stream, n uint32, all []move) error {
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
