package cuda

import (
	"context"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// copyOut copies rows of f to dst after the earlier work of the stream, and waits.
func (d *device) copyOut(ctx context.Context, s *driver.Stream, f field, rows solver.Stripe, dst []byte) error {
	width := d.layout.Mesh.RowBytes()
	if at, ok := d.inPinned(dst); ok {
		m := d.times.begin(s, solver.Work{Kind: solver.WorkToHost, Rows: rows.Rows()})
		if err := s.Copy2D(d.target.Rows(at, width), f.at(rows.Lo).Rows(f.pitch), width, rows.Rows()); err != nil {
			return err
		}
		m.end()
		return d.awaitAll(ctx, s)
	}
	chunk := len(d.staging.Bytes()) / width
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		n := min(chunk, rows.Hi-lo)
		m := d.times.begin(s, solver.Work{Kind: solver.WorkToHost, Rows: n})
		if err := s.Copy2D(d.staging.Rows(0, width), f.at(lo).Rows(f.pitch), width, n); err != nil {
			return err
		}
		m.end()
		if err := d.awaitAll(ctx, s); err != nil {
			return err
		}
		copy(dst[(lo-rows.Lo)*width:], d.staging.Bytes()[:n*width])
	}
	return nil
}

// stage copies the first n rows of the staging memory to rows [lo, lo+n) of f, in the fast stream, and waits.
func (d *device) stage(ctx context.Context, f field, lo, n int) error {
	width := d.layout.Mesh.RowBytes()
	m := d.times.begin(d.fast, solver.Work{Kind: solver.WorkFromHost, Rows: n})
	if err := d.fast.Copy2D(f.at(lo).Rows(f.pitch), d.staging.Rows(0, width), width, n); err != nil {
		return err
	}
	m.end()
	return d.awaitAll(ctx, d.fast)
}

// inPinned returns the offset of dst in the pinned memory; ok is false if dst does not lie in it.
func (d *device) inPinned(dst []byte) (at int, ok bool) {
	if d.target == nil || len(dst) == 0 {
		return 0, false
	}
	memory := d.target.Bytes()
	at = int(uintptr(unsafe.Pointer(&dst[0])) - uintptr(unsafe.Pointer(&memory[0])))
	return at, at >= 0 && at+len(dst) <= len(memory)
}
