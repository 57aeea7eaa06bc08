package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
	"jacobi/solver"
)

// ring is the number of passes whose sums may be in flight to the host.
const ring = 4

// lag is that of the Limits: Sums waits for the device.
const lag = 1

// Backend implements solver.Backend on one GPU. All calls must come from the goroutine that called New, which stays on
// its thread until Close.
type Backend struct {
	dev      *device
	sole     bool // no other rank uses the GPU
	kernels  []*kernel
	operator operator      // none with kernels without terms
	edged    bool          // Edges has swept a part of the pass
	middle   solver.Stripe // the rows that it has left to Interior

	halosIn  *driver.Event // on fast: the halos of now are filled, and the edges of the previous pass are swept
	edgesOut *driver.Event // on fast: the edges of next are swept
	swept    *driver.Event // on slow: the interior of now is swept
	// interiorPending is set if slow holds the interior of a pass that fast has not waited for.
	interiorPending bool

	counts  driver.DevicePtr    // ring x MaxSweeps x sumWords
	pinned  *driver.HostMemory  // counts on the host
	before  []byte              // counts as they were before the pass that now uses the place in the ring
	arrived [ring]*driver.Event // on slow: the sums at this place are on the host
	bias    [limbs]float64
	sums    []solver.Sum

	mover mover // the Exchange; alone before there is one
	// Edges sweeps the whole stripe in passes of at least sweepAllFrom sweeps.
	sweepAllFrom int
}

// connect makes an Exchange known to the Backend, and with it how Edges sweeps.
func (b *Backend) connect(m mover, sweepAllFrom int) { b.mover, b.sweepAllFrom = m, sweepAllFrom }

// Limits implements solver.Backend.
func (b *Backend) Limits() solver.Limits {
	return solver.Limits{MaxSweeps: b.dev.maxSweeps(), Lag: lag, Bytes: b.dev.bytes}
}

// Describe names the GPU.
func (b *Backend) Describe() string {
	return fmt.Sprintf("cuda %d, %s", b.dev.gpu.Index, b.dev.gpu.Name)
}

// Edges implements solver.Backend.
func (b *Backend) Edges(ctx context.Context, sp solver.Pass) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.check(sp); err != nil {
		return err
	}
	if err := b.takePlace(ctx, sp); err != nil {
		return err
	}
	d := b.dev
	s, middle := d.layout.Stripe, d.layout.Middle()
	if sp.Sweeps >= b.sweepAllFrom {
		middle = solver.Stripe{Lo: s.Hi, Hi: s.Hi}
	}
	edges := [2]solver.Stripe{{Lo: s.Lo, Hi: middle.Lo}, {Lo: middle.Hi, Hi: s.Hi}}
	h, err := b.awaitHalos(sp, edges[0], true)
	if err != nil {
		return err
	}
	if middle.Rows() > 0 {
		if err := b.halosIn.Record(d.fast); err != nil {
			return err
		}
	}
	if b.interiorPending { // otherwise all passes are in this stream, and a wait would cost each two microseconds
		if err := d.fast.Wait(b.swept); err != nil {
			return err
		}
		b.interiorPending = false
	}
	if err := b.mover.beforeEdges(); err != nil {
		return err
	}
	for _, edge := range edges {
		if edge.Rows() <= 0 {
			continue
		}
		kind := solver.WorkEdges
		if middle.Rows() <= 0 {
			kind = solver.WorkStripe
		}
		if err := b.timed(d.fast, kind, sp, edge, edge, h); err != nil {
			return err
		}
	}
	b.edged, b.middle = true, middle
	return b.edgesOut.Record(d.fast)
}

// check returns an error for a pass that this backend cannot do.
func (b *Backend) check(sp solver.Pass) error {
	if err := b.dev.layout.CheckPass(sp, b.dev.maxSweeps()); err != nil {
		return fmt.Errorf("cuda backend: %w", err)
	}
	return nil
}

// awaitHalos returns what the kernel of pass sp over the rows out of next does with halos. If it does not wait for
// those of now itself, the fast stream does. exchange tells whether an exchange follows the pass.
func (b *Backend) awaitHalos(sp solver.Pass, out solver.Stripe, exchange bool) (halos, error) {
	s := b.dev.layout.Stripe
	if sp.Sweeps > 1 && out.Lo <= s.Lo && out.Hi >= s.Hi {
		if h, ok := b.mover.inKernel(exchange); ok {
			return h, nil
		}
	}
	return halos{}, b.mover.awaitRows()
}

// Interior implements solver.Backend.
func (b *Backend) Interior(ctx context.Context, sp solver.Pass) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.check(sp); err != nil {
		return err
	}
	d, edged := b.dev, b.edged
	out, count, h := b.middle, b.middle, halos{}
	if !edged {
		if err := b.takePlace(ctx, sp); err != nil {
			return err
		}
		out, count = d.layout.Reach(sp.Margin), d.layout.Stripe
		var err error
		if h, err = b.awaitHalos(sp, out, false); err != nil {
			return err
		}
		if err := b.halosIn.Record(d.fast); err != nil {
			return err
		}
	}
	if out.Rows() > 0 {
		if err := d.slow.Wait(b.halosIn); err != nil {
			return err
		}
		b.interiorPending = true
		kind := solver.WorkInterior
		if !edged {
			kind = solver.WorkStripe
		}
		if err := errors.Join(b.timed(d.slow, kind, sp, out, count, h), b.swept.Record(d.slow)); err != nil {
			return err
		}
	}
	if edged {
		if err := d.slow.Wait(b.edgesOut); err != nil {
			return err
		}
	}
	d.now, d.next, b.edged = d.next, d.now, false
	return b.sendSums(sp)
}

// timed is a sweep that the timeline shows.
func (b *Backend) timed(s *driver.Stream, k solver.WorkKind, sp solver.Pass, out, count solver.Stripe,
	h halos) error {
	m := b.dev.times.begin(s, solver.Work{Kind: k, Number: sp.Index, First: sp.First, Sweeps: sp.Sweeps})
	defer m.end()
	return b.sweep(s, sp, out, count, h)
}

// sweep launches pass sp over the rows out of next and sums the squares of the rows in count. h says what the kernel
// does with halos.
func (b *Backend) sweep(s *driver.Stream, sp solver.Pass, out, count solver.Stripe, h halos) error {
	d := b.dev
	p := pass{
		now: d.now.base, next: d.next.base, sums: b.counts + driver.DevicePtr(b.slot(sp)), bias: b.bias,
		pitch: int32(d.now.pitch / d.layout.Mesh.DType.Size()), nx: int32(d.layout.Mesh.NX),
		rowLo: int32(d.now.rows.Lo), rowHi: int32(d.now.rows.Hi), outLo: int32(out.Lo), outHi: int32(out.Hi),
		countLo: int32(count.Lo), countHi: int32(count.Hi), fixTop: nowhere, fixBottom: -nowhere,
		sweeps: int32(sp.Sweeps), awaited: uint32(h.awaited), posted: uint32(h.posted), sides: h.sides,
	}
	if !d.layout.Neighbour[solver.Top] {
		p.fixTop = 0
	}
	if !d.layout.Neighbour[solver.Bottom] {
		p.fixBottom = int32(d.layout.Mesh.NY - 1)
	}
	if h.posted > 0 {
		p.depth = int32(d.layout.Depth)
	}
	norms := d.layout.NormsOf(sp)
	for _, k := range b.kernels {
		if did, err := k.launch(s, p, norms); did || err != nil {
			return err
		}
	}
	return fmt.Errorf("cuda backend: no kernel does %d sweeps a pass with %d bytes of shared memory", sp.Sweeps,
		d.gpu.SharedBytes)
}

// Undo implements solver.Backend.
func (b *Backend) Undo() error {
	d := b.dev
	if err := errors.Join(b.mover.awaitRows(), d.context.Synchronize()); err != nil {
		return err
	}
	d.now, d.next = d.next, d.now
	return nil
}

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

// TimeoutError reports that a pass did not end in time: the device hangs, or a neighbour that it waits for.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the GPU did not finish a pass within %v: it, or a neighbour whose rows it waits for, hangs",
		e.After)
}

// Timeout returns true, as for a net.Error that is a timeout.
func (e *TimeoutError) Timeout() bool { return true }

// await polls an event without pause for the length of a usual pass, and then with pauses, which leave the core free. A
// pause may last up to a millisecond longer than asked for, in which the device may run out of work.
const (
	spinTime = 20 * time.Millisecond
	napTime  = 50 * time.Microsecond
)

// await waits for an event. The device may itself wait for a neighbour that is gone, so the wait ends with ctx, and
// with a *TimeoutError after the timeout.
func (d *device) await(ctx context.Context, e *driver.Event) error {
	start := time.Now()
	var limit awake.Limit // from the first nap on
	for {
		if done, err := e.Done(); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch waited := time.Since(start); {
		case waited <= spinTime:
		case limit == awake.Limit{}:
			limit = awake.Of(ctx).Limit(d.timeout)
		case d.timeout > 0 && limit.Left() <= 0:
			return &TimeoutError{After: d.timeout}
		default:
			time.Sleep(napTime)
		}
	}
}

// awaitAll waits for all work in a stream, for at most the timeout of a pass.
func (d *device) awaitAll(ctx context.Context, s *driver.Stream) error {
	if err := d.emptied.Record(s); err != nil {
		return err
	}
	return d.await(ctx, d.emptied)
}

// halos says what the kernel of a pass does with halos besides reading them. The Exchange makes the value, and Backend
// hands it to the kernel. With the zero value the kernel does nothing else.
type halos struct {
	awaited solver.ExchangeNumber // rows that the kernel waits for; 0: none
	posted  solver.ExchangeNumber // the exchange whose rows it hands on; 0: none
	sides   [2]passSide           // where rows go, and the words of both
}

// mover is what Backend asks of its Exchange.
type mover interface {
	// beforeEdges tells neighbours, after all earlier work of the fast stream, that the halo of next is free for the
	// next exchange, if they cannot know.
	beforeEdges() error
	// inKernel returns what the kernel of a pass over the whole stripe does with halos; exchange tells whether an
	// exchange follows the pass. ok is false if kernels do not move rows.
	inKernel(exchange bool) (h halos, ok bool)
	// awaitRows makes the fast stream wait for halos for which no work waits yet.
	awaitRows() error
	// loaded makes later work of the fast stream wait until the neighbours that write into this rank's memory have
	// loaded their fields, too. A rank that is ahead would hand on rows into a halo that a Load overwrites.
	loaded() error
}

// alone is the mover of a Backend without an Exchange.
type alone struct{}

func (alone) beforeEdges() error          { return nil }
func (alone) inKernel(bool) (halos, bool) { return halos{}, false }
func (alone) awaitRows() error            { return nil }
func (alone) loaded() error               { return nil }
