package cpu

import (
	"unsafe"

	"jacobi/solver"
)

// field holds rows [rows.Lo, rows.Hi) of the mesh, numbered as in solver.Layout: halo rows may be negative or beyond
// the mesh. A vector before the first row and one after the last are readable.
type field struct {
	memory memory
	rows   solver.Stripe
	stride int
}

func fieldBytes(rows solver.Stripe, l rowLayout) int { return rows.Rows()*l.stride + 2*cacheLine }

func newField(rows solver.Stripe, l rowLayout) (*field, error) {
	m, err := newMemory(fieldBytes(rows, l))
	if err != nil {
		return nil, err
	}
	return &field{memory: m, rows: rows, stride: l.stride}, nil
}

// row returns the address of row y, a multiple of a cache line.
func (f *field) row(y int) unsafe.Pointer {
	return unsafe.Add(f.memory.pointer(), cacheLine+(y-f.rows.Lo)*f.stride)
}
