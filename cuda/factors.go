package cuda

import (
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
)

// factorsArg is struct Factors in kernels/multigrid_coarsest.cuh.
type factorsArg struct {
	values               driver.DevicePtr
	count                int64
	slots, blocks, chain int32
	near                 int32
}

const coarsestThreads = 256 // of weighted_coarsest

// coarsestArg is struct Coarsest.
type coarsestArg struct {
	factors             factorsArg
	place, copies, b, u driver.DevicePtr
	copied, _           int32
}

// newFactors allocates the values for the coarsest level. A block has them in shared memory if they fit into room.
func (v *Levels) newFactors(room int) (a factorsArg, err error) {
	b, bytes := v.layout.Blocking(), v.layout.FactorBytes()
	a = factorsArg{count: bytes / 8, slots: int32(b.Slots), blocks: int32(b.Blocks), chain: int32(b.Chain)}
	if bytes <= int64(room) {
		a.near = 1
	}
	a.values, err = v.dev.alloc(bytes)
	return a, err
}

// shared returns the bytes of shared memory that the values take.
func (a factorsArg) shared() int { return int(a.count) * 8 * int(a.near) }

// uploadFactors copies the values to the device.
func (v *Levels) uploadFactors(a factorsArg, f *multigrid.Factors) error {
	return v.dev.context.CopyToDevice(a.values, unsafe.Slice((*byte)(unsafe.Pointer(&f.Values[0])), 8*len(f.Values)))
}
