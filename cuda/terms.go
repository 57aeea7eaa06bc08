package cuda

import "jacobi/cuda/driver"

// terms is what the kernels with terms take after a pass: struct Terms in kernels/terms.cuh.
type terms struct {
	fixed, busy              driver.DevicePtr
	words, groups            int32
	left, right, top, bottom int32
	copies                   int32
	sourcePitch              uint32
	source                   driver.DevicePtr
	scale, blend             uint64 // bits of a value of the field's type
}
