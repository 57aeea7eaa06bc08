package cpu

import (
	"unsafe"

	"jacobi/solver"
)

// field holds rows [rows.Lo, rows.Hi) of the mesh, numbered as in solver.Layout: halo rows may be negative or beyond
// the mesh. A vector before the first row and one after the last are readable. With a stride of 0 all rows are one.
type field struct {
	memory memory
	rows   solver.Stripe
	stride int
	shared int // bytes of the one row, if the stride is 0
}

// newField returns a field without memory.
func newField(rows solver.Stripe, stride int) *field { return &field{rows: rows, stride: stride} }

// newSharedRow is newField for rows that are all one.
func newSharedRow(rows solver.Stripe, bytes int) *field { return &field{rows: rows, shared: bytes} }

// bytes returns the bytes of memory that the field takes.
func (f *field) bytes() int { return f.rows.Rows()*f.stride + f.shared + 2*cacheLine }

func (f *field) open() (err error) {
	f.memory, err = newMemory(f.bytes())
	return err
}

// close frees the memory. A second call does nothing.
func (f *field) close() error {
	m := f.memory
	f.memory = nil
	return m.free()
}

// row returns the address of row y, a multiple of a cache line.
func (f *field) row(y int) unsafe.Pointer {
	return unsafe.Add(f.memory.pointer(), cacheLine+(y-f.rows.Lo)*f.stride)
}
