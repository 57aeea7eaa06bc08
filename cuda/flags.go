package cuda

import (
	"jacobi/cuda/driver"
	"jacobi/solver"
)

// flags is device memory with two 32-bit words for each side: the number of the newest exchange whose rows have come
// from the neighbour, and the number of the newest exchange for which the neighbour's halo is free. Two more words for
// each side count the progress of a kernel that hands rows on (peerstores.go) and the fields that the neighbour has
// loaded. 0 is no memory.
type flags driver.DevicePtr

const (
	flagStride = 128
	flagsBytes = 2 << 20 // an allocation of its own, so that a neighbour maps nothing else
)

func (f flags) word(i int) driver.DevicePtr {
	return driver.DevicePtr(f) + driver.DevicePtr(i*flagStride)
}

func (f flags) came(side solver.Side) driver.DevicePtr   { return f.word(int(side)) }
func (f flags) room(side solver.Side) driver.DevicePtr   { return f.word(2 + int(side)) }
func (f flags) count(side solver.Side) driver.DevicePtr  { return f.word(4 + int(side)) }
func (f flags) loaded(side solver.Side) driver.DevicePtr { return f.word(6 + int(side)) }

// openFlags allocates the words that neighbours write.
func (d *device) openFlags() error {
	p, err := d.alloc(flagsBytes)
	if err != nil {
		return err
	}
	d.flags = flags(p)
	if err := d.fast.Fill(p, 0, flagsBytes); err != nil {
		return err
	}
	return d.fast.Synchronize()
}

// release unblocks the streams that wait for a neighbour, so that the device can be closed after a failure.
func (d *device) release() error {
	if d.flags == 0 {
		return nil
	}
	f := d.flags
	return d.releaseWords(f.came(solver.Top), f.room(solver.Top), f.loaded(solver.Top), f.came(solver.Bottom),
		f.room(solver.Bottom), f.loaded(solver.Bottom))
}
