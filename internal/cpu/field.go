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
}

func fieldBytes(rows solver.Stripe, stride int) int { return rows.Rows()*stride + 2*cacheLine }

func newField(rows solver.Stripe, stride int) (*field, error) {
	m, err := newMemory(fieldBytes(rows, stride))
	if err != nil {
		return nil, err
	}
	return &field{memory: m, rows: rows, stride: stride}, nil
}

// newSharedRow returns a field whose rows are all one row of the given number of bytes.
func newSharedRow(bytes int) (*field, error) {
	f, err := newField(solver.Stripe{Hi: 1}, bytes)
	if err != nil {
		return nil, err
	}
	f.stride = 0
	return f, nil
}

// row returns the address of row y, a multiple of a cache line.
func (f *field) row(y int) unsafe.Pointer {
	return unsafe.Add(f.memory.pointer(), cacheLine+(y-f.rows.Lo)*f.stride)
}
