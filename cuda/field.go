package cuda

import (
	"jacobi/cuda/driver"
	"jacobi/solver"
)

// pitchAlign is the multiple, in bytes, to which the distance of two rows is rounded: the widest access of a warp.
const pitchAlign = 128

// field describes rows of a mesh in device memory: row y, rows.Lo <= y < rows.Hi, is at base + (y-rows.Lo)*pitch.
type field struct {
	base  driver.DevicePtr
	rows  solver.Stripe // the stripe, its halos, and fixed rows next to it
	pitch int           // bytes
	index int           // 0 or 1: the neighbours' fields with this index are swept in the same passes
}

func pitchOf(m solver.Mesh) int { return (m.RowBytes() + pitchAlign - 1) / pitchAlign * pitchAlign }

func (f field) bytes() int64 { return int64(f.rows.Rows()) * int64(f.pitch) }

// at returns the address of row y.
func (f field) at(y int) driver.DevicePtr {
	return f.base + driver.DevicePtr((y-f.rows.Lo)*f.pitch)
}
