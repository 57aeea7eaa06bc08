package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Load implements solver.Backend.
func (b *Backend) Load(ctx context.Context, rows solver.RowSource) error {
	d := b.dev
	b.edged = false
	if err := b.mover.awaitRows(); err != nil { // rows in flight must not arrive after the load
		return err
	}
	// Kernels also read the padding after a row. Its value cancels out, but it must be a number.
	if err := d.fast.Fill(d.now.base, 0, int(d.now.bytes())); err != nil {
		return err
	}
	from := solver.RowsOf(rows)
	from.Row = repeating(d.layout.Mesh, from.Row)
	if err := d.load(ctx, d.fast, d.layout.Mesh, upload{to: d.now, from: from}); err != nil {
		return err
	}
	if err := d.loadOperator(ctx, b.operator); err != nil {
		return err
	}
	// The driver takes long for the first launch of a kernel, so launch the kernel of nearly all passes before the
	// first sweep. Its output in next is not used.
	if err := b.sweep(d.fast, solver.Pass{Sweeps: min(d.layout.Depth, d.maxSweeps())}, d.layout.Stripe, d.layout.Stripe,
		halos{}); err != nil {
		return err
	}
	// The fixed rows and columns of next are those of now.
	if err := d.fast.CopyOnDevice(d.next.base, d.now.base, int(d.now.bytes())); err != nil {
		return err
	}
	if err := d.fast.Fill(b.counts, 0, ring*d.maxSweeps()*sumBytes); err != nil {
		return err
	}
	// Not the whole context: a neighbour in this process may wait in it until this rank has loaded.
	for _, stream := range []*driver.Stream{d.fast, d.slow} {
		if err := d.awaitAll(ctx, stream); err != nil {
			return err
		}
	}
	clear(b.pinned.Bytes()) // as the words on the device
	return b.mover.loaded()
}

// HaloBytes implements solver.Backend.
func (b *Backend) HaloBytes() [2]int { return b.dev.layout.HaloBytes() }

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	if err := b.dev.layout.CheckSide(side, len(dst)); err != nil {
		return fmt.Errorf("cuda backend: edge: %w", err)
	}
	return b.dev.copyOut(ctx, b.dev.fast, b.dev.next, b.dev.layout.Edge(side), dst)
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(ctx context.Context, side solver.Side, src []byte) error {
	if err := b.dev.layout.CheckSide(side, len(src)); err != nil {
		return fmt.Errorf("cuda backend: halo: %w", err)
	}
	// The staging memory may be in use, and the stream may wait for the neighbour at the other side, which may be gone.
	if err := b.dev.awaitAll(ctx, b.dev.fast); err != nil {
		return err
	}
	copy(b.dev.staging.Bytes(), src)
	rows := b.dev.layout.Halo(side)
	return b.dev.stage(ctx, b.dev.now, rows.Lo, rows.Rows())
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.dev.layout.CheckCopy(s, len(dst)); err != nil {
		return fmt.Errorf("cuda backend: %w", err)
	}
	// A copy must not be queued behind work that never ends: dst may be unmapped meanwhile.
	for _, stream := range []*driver.Stream{b.dev.fast, b.dev.slow} {
		if err := b.dev.awaitAll(ctx, stream); err != nil {
			return err
		}
	}
	return b.dev.copyOut(ctx, b.dev.slow, b.dev.now, s, dst)
}

// Pin locks the pages of memory, from mmap, so that CopyRows copies straight into it, until the returned function is
// called. Memory that is unmapped before Close must be unpinned first.
func (b *Backend) Pin(memory []byte) (unpin func() error, err error) {
	h, err := b.dev.context.RegisterHost(memory)
	if err != nil {
		return nil, err
	}
	b.dev.target = h
	return func() error {
		b.dev.target = nil
		return errors.Join(b.dev.release(), h.Free()) // after a failure a stream may wait for a neighbour
	}, nil
}

// upload is an array on the device and where its rows come from.
type upload struct {
	to   field
	from solver.Reader
	what string // for errors, "" for the field
}

// newUpload returns the upload of a value of the points of an operator.
func newUpload(to field, values solver.ValueRows, k solver.Value) upload {
	return upload{to, solver.ValuesOf(values, k), k.String()}
}

// load fills arrays that hold the same rows of a mesh, in a stream. All cores read rows into the quarters of
// the staging memory: those that have no row left in one go on in the next, and a full one travels meanwhile. Of rows
// that are the same, one travels, and the device copies it.
func (d *device) load(ctx context.Context, s *driver.Stream, m solver.Mesh, arrays ...upload) error {
	width, staging := m.RowBytes(), len(d.staging.Bytes())
	slots := staging / width / len(arrays) // rows of each array
	if slots == 0 {
		for _, a := range arrays {
			if err := d.load(ctx, s, m, a); err != nil {
				return err
			}
		}
		return nil
	}
	parts := min(len(d.staged), slots)
	slots /= parts // in a part
	var going []*filling
	defer func() {
		for _, f := range going {
			<-f.done
		}
	}()
	rows := arrays[0].to.rows
	for i, y := 0, rows.Lo; y < rows.Hi || len(going) > 0; i++ {
		if len(going) == parts || y == rows.Hi {
			f := going[0]
			<-f.done
			if going = going[1:]; f.err != nil {
				return f.err
			}
			if err := d.putAll(s, m, f, arrays); err != nil {
				return err
			}
		}
		if y == rows.Hi {
			continue
		}
		part := i % parts
		if i >= parts {
			if err := d.await(ctx, d.staged[part]); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := &filling{runs: nextRuns(m, solver.Stripe{Lo: y, Hi: rows.Hi}, arrays, slots), part: part,
			array: slots * width, done: make(chan struct{})}
		going = append(going, f)
		go func() {
			defer close(f.done)
			f.err = d.fill(m, f, arrays)
		}()
		y = f.runs[len(f.runs)-1].Hi
	}
	return d.awaitAll(ctx, s)
}

// filling is a part of the staging memory that is filled with rows of each array in turn.
type filling struct {
	runs  []solver.Stripe // of rows that are the same
	part  int
	array int // bytes of an array
	done  chan struct{}
	err   error
}

// fill reads the rows of a filling.
func (d *device) fill(m solver.Mesh, f *filling, arrays []upload) error {
	width, staging := m.RowBytes(), d.staging.Bytes()[f.part*len(arrays)*f.array:]
	return parallel.Each(len(f.runs), func(r int) error {
		row, ok := m.Canonical(f.runs[r].Lo)
		if !ok {
			return fmt.Errorf("row %d is not of the mesh", f.runs[r].Lo)
		}
		for k, a := range arrays {
			if err := a.from.Row(row, staging[k*f.array+r*width:][:width]); err != nil {
				return a.failed(row, err)
			}
		}
		return nil
	})
}

// putAll copies a filling to the device.
func (d *device) putAll(s *driver.Stream, m solver.Mesh, f *filling, arrays []upload) error {
	for k, a := range arrays {
		if err := d.put(s, a.to, f.runs, (f.part*len(arrays)+k)*f.array, m.RowBytes()); err != nil {
			return err
		}
	}
	return d.staged[f.part].Record(s)
}

// failed says which row cannot be read.
func (u upload) failed(row int, err error) error {
	if u.what != "" {
		return fmt.Errorf("%s: row %d: %w", u.what, row, err)
	}
	return fmt.Errorf("row %d: %w", row, err)
}

// nextRuns cuts the first of rows into at most n runs of rows that are the same in all arrays.
func nextRuns(m solver.Mesh, rows solver.Stripe, arrays []upload, n int) (runs []solver.Stripe) {
	again := func(y int) bool {
		for _, a := range arrays {
			if !a.from.Repeats(m, y) {
				return false
			}
		}
		return true
	}
	for lo := rows.Lo; lo < rows.Hi && len(runs) < n; {
		hi := lo + 1
		for hi < rows.Hi && again(hi) {
			hi++
		}
		runs, lo = append(runs, solver.Stripe{Lo: lo, Hi: hi}), hi
	}
	return runs
}

// put copies the first row of each run from the staging memory, where they follow one another from an offset on, and
// then within the device to the other rows of the run.
func (d *device) put(s *driver.Stream, to field, runs []solver.Stripe, offset, width int) error {
	for len(runs) > 0 {
		n := 1 // rows that follow one another in both memories
		for n < len(runs) && runs[n-1].Rows() == 1 {
			n++
		}
		if err := s.Copy2D(to.at(runs[0].Lo).Rows(to.pitch), d.staging.Rows(offset, width), width, n); err != nil {
			return err
		}
		run := runs[n-1]
		for done := 1; done < run.Rows(); done *= 2 {
			from, next := to.at(run.Lo).Rows(to.pitch), to.at(run.Lo+done).Rows(to.pitch)
			if err := s.Copy2D(next, from, width, min(done, run.Rows()-done)); err != nil {
				return err
			}
		}
		runs, offset = runs[n:], offset+n*width
	}
	return nil
}

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
