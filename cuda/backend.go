package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// ring is the number of blocks whose sums may be on their way to the host.
const ring = 4

// chunkBytes is the pinned memory through which rows travel between host and device.
const chunkBytes = 8 << 20

// Backend implements solver.Backend on one GPU. All calls come from the goroutine that called New, which stays on its
// thread until Close.
//
// Two streams order the work of block b. The stream of high priority: halos into now, edges of next, then what Exchange
// does with them. The other one: interior of next, sums to the host. The interior reads no halo unless it does the edges as
// well, so it runs while rows travel.
type Backend struct {
	layout  solver.Layout
	device  *driver.Device
	sole    bool
	ptx     bool
	timeout time.Duration
	context *driver.Context
	module  *driver.Module
	kernels []*kernel

	now, next field
	fast      *driver.Stream // edges and halos
	slow      *driver.Stream // the interior
	halosIn   *driver.Event  // on fast: the halos of now are there, and the edges before
	edgesOut  *driver.Event  // on fast: the edges of next
	swept     *driver.Event  // on slow: the interior of now

	counts  driver.DevicePtr   // ring x MaxSweeps x sumWords
	pinned  *driver.HostMemory // the same on the host
	arrived [ring]*driver.Event
	staging *driver.HostMemory // rows on their way
	target  *driver.HostMemory // pinned for rows; nil: none is
	emptied *driver.Event      // of a stream that is waited for
	bias    [pieces]float64
	flags   driver.DevicePtr // see peer.go; 0 without peers

	whole    int           // blocks of at least so many sweeps are swept at once, edges and all; set by NewExchange
	peers    []*Peer       // neighbours that write into this rank's memory
	direct   *direct       // how kernels move rows; nil: they do not
	edged    *solver.Block // the block whose edges are done and whose interior is not
	middle   solver.Stripe // what its interior has left to do
	undoable bool
	sums     []solver.Sum
	bytes    int64
	closers  []func() error
}

// Options choose a GPU.
type Options struct {
	Device  int           // index among those that CUDA_VISIBLE_DEVICES leaves
	Sole    bool          // no other rank uses this GPU, so that kernels may wait for neighbours
	Timeout time.Duration // for a block of sweeps, neighbours included; 0: none
	PTX     bool          // let the driver finish the kernels even where they are finished for the GPU
}

// TimeoutError says that a block of sweeps did not end in time: the device, or a neighbour that it waits for, hangs.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the GPU did not finish a block of sweeps within %v: it, or a neighbour whose rows it waits for, hangs", e.After)
}

// Timeout reports that this is a timeout, as of net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// New opens the GPU and allocates the fields.
func New(d *driver.Driver, l solver.Layout, o Options) (b *Backend, err error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	devices, err := d.Devices()
	if err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	if o.Device < 0 || o.Device >= len(devices) {
		return nil, fmt.Errorf("cuda backend: device %d: there are %d", o.Device, len(devices))
	}
	b = &Backend{layout: l, device: &devices[o.Device], sole: o.Sole, ptx: o.PTX, timeout: o.Timeout, whole: math.MaxInt, bias: biases(l.Magnitude)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cuda backend on device %d (%s): %w", o.Device, b.device.Name, err), b.Close())
			b = nil
		}
	}()
	if b.context, err = b.device.Retain(driver.ScheduleAuto); err != nil {
		return b, err
	}
	b.onClose(b.context.Close)
	if err := b.context.Bind(); err != nil {
		return b, err
	}
	b.onClose(b.context.Unbind)
	for _, open := range []func() error{b.openKernels, b.openStreams, b.allocate} {
		if err := open(); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *Backend) openKernels() (err error) {
	kernels := image(b.device)
	if b.ptx {
		kernels = sweepPTX
	}
	if b.module, err = b.context.Load(kernels); err != nil {
		return err
	}
	b.onClose(b.module.Close)
	for _, s := range shapes(b.layout.Mesh.DType) {
		k, err := loadKernel(b.module, b.device, s)
		if err != nil {
			return err
		}
		b.kernels = append(b.kernels, k)
	}
	return nil
}

func (b *Backend) openStreams() error {
	lowest, highest, err := b.context.Priorities()
	if err != nil {
		return err
	}
	for _, s := range []struct {
		stream   **driver.Stream
		priority int
	}{{&b.fast, highest}, {&b.slow, lowest}} {
		if *s.stream, err = b.context.NewStream(s.priority); err != nil {
			return err
		}
		b.onClose((*s.stream).Close)
	}
	for _, e := range []**driver.Event{&b.halosIn, &b.edgesOut, &b.swept, &b.emptied, &b.arrived[0], &b.arrived[1], &b.arrived[2], &b.arrived[3]} {
		if *e, err = b.context.NewEvent(false); err != nil {
			return err
		}
		b.onClose((*e).Close)
	}
	return nil
}

func (b *Backend) allocate() error {
	f := field{rows: b.layout.Held(), pitch: pitchOf(b.layout.Mesh)}
	for _, p := range []*field{&b.now, &b.next} {
		*p = f
		base, err := b.alloc(f.bytes())
		if err != nil {
			return fmt.Errorf("%s for two fields of %d rows of %d bytes: %w", humanize.IBytes(uint64(2*f.bytes())), f.rows.Rows(), f.pitch, err)
		}
		p.base = base
	}
	n := ring * b.maxSweeps() * sumBytes
	var err error
	if b.counts, err = b.alloc(int64(n)); err != nil {
		return err
	}
	if b.pinned, err = b.context.AllocHost(n); err != nil {
		return err
	}
	b.onClose(b.pinned.Free)
	depth := b.layout.Depth * b.layout.Mesh.RowBytes()
	if b.staging, err = b.context.AllocHost(max(chunkBytes/b.layout.Mesh.RowBytes()*b.layout.Mesh.RowBytes(), 2*depth)); err != nil {
		return err
	}
	b.onClose(b.staging.Free)
	return nil
}

func (b *Backend) alloc(n int64) (driver.DevicePtr, error) {
	p, err := b.context.Alloc(n)
	if err != nil {
		return 0, err
	}
	b.bytes += n
	b.onClose(func() error { return b.context.Free(p) })
	return p, nil
}

func (b *Backend) maxSweeps() int { return MaxSweeps(b.layout.Mesh.DType) }

// Limits implements solver.Backend.
func (b *Backend) Limits() solver.Limits {
	return solver.Limits{MaxSweeps: b.maxSweeps(), Lag: 1, Bytes: b.bytes}
}

// Describe names the GPU.
func (b *Backend) Describe() string { return fmt.Sprintf("cuda %d, %s", b.device.Index, b.device.Name) }

// Edges implements solver.Backend.
func (b *Backend) Edges(ctx context.Context, blk solver.Block) error {
	if err := b.begin(ctx, blk); err != nil {
		return err
	}
	if blk.Margin != 0 {
		return fmt.Errorf("cuda backend: edges of a block with margin %d", blk.Margin)
	}
	s, middle := b.layout.Stripe, b.layout.Middle()
	if blk.Sweeps >= b.whole {
		middle = solver.Stripe{Lo: s.Hi, Hi: s.Hi}
	}
	if err := b.beginEdges(blk); err != nil {
		return err
	}
	for _, p := range b.peers {
		if err := p.allow(); err != nil {
			return err
		}
	}
	for _, edge := range []solver.Stripe{{Lo: s.Lo, Hi: middle.Lo}, {Lo: middle.Hi, Hi: s.Hi}} {
		if edge.Rows() <= 0 {
			continue
		}
		if err := b.sweep(b.fast, blk, edge, edge, middle.Rows() == 0); err != nil {
			return err
		}
	}
	b.edged = &blk
	b.middle = middle
	return b.edgesOut.Record(b.fast)
}

// begin checks a block.
func (b *Backend) begin(ctx context.Context, blk solver.Block) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.layout.CheckBlock(blk, b.maxSweeps()); err != nil {
		return fmt.Errorf("cuda backend: %w", err)
	}
	b.edged, b.undoable = nil, false
	return nil
}

// beginEdges makes the fast stream wait for the interior of now, and marks the halos.
func (b *Backend) beginEdges(blk solver.Block) error {
	return errors.Join(b.markHalos(blk), b.fast.Wait(b.swept))
}

// markHalos marks where the halos of now are there, unless the passes of blk wait for them themselves.
func (b *Backend) markHalos(blk solver.Block) error {
	if blk.Sweeps == 1 {
		if err := b.direct.settle(); err != nil {
			return err
		}
	}
	return b.halosIn.Record(b.fast)
}

// Interior implements solver.Backend.
func (b *Backend) Interior(ctx context.Context, blk solver.Block) error {
	edged := b.edged
	out, count := b.middle, b.middle
	switch {
	case edged == nil:
		if err := b.begin(ctx, blk); err != nil {
			return err
		}
		out, count = b.layout.Reach(blk.Margin), b.layout.Stripe
		if err := b.markHalos(blk); err != nil {
			return err
		}
	case *edged != blk:
		return fmt.Errorf("cuda backend: interior of block %+v after the edges of block %+v", blk, *edged)
	}
	if err := b.slow.Wait(b.halosIn); err != nil {
		return err
	}
	if out.Rows() > 0 {
		if err := b.sweep(b.slow, blk, out, count, false); err != nil {
			return err
		}
	}
	if edged != nil {
		if err := b.slow.Wait(b.edgesOut); err != nil {
			return err
		}
	}
	if err := b.swept.Record(b.slow); err != nil {
		return err
	}
	b.edged, b.undoable = nil, true
	b.now, b.next = b.next, b.now
	return b.sendSums(blk)
}

// sweep launches the pass of blk over the rows out of next, of which the squares of count are summed. If an exchange follows that
// is all of the stripe, the pass may hand on the edges.
func (b *Backend) sweep(s *driver.Stream, blk solver.Block, out, count solver.Stripe, exchange bool) error {
	p := pass{
		now: b.now.base, next: b.next.base, sums: b.counts + driver.DevicePtr(b.slot(blk)), bias: b.bias,
		pitch: int32(b.now.pitch / b.layout.Mesh.DType.Size()), nx: int32(b.layout.Mesh.NX),
		rowLo: int32(b.now.rows.Lo), rowHi: int32(b.now.rows.Hi), outLo: int32(out.Lo), outHi: int32(out.Hi),
		countLo: int32(count.Lo), countHi: int32(count.Hi), fixTop: nowhere, fixBottom: -nowhere, sweeps: int32(blk.Sweeps),
	}
	if !b.layout.Neighbour[solver.Top] {
		p.fixTop = 0
	}
	if !b.layout.Neighbour[solver.Bottom] {
		p.fixBottom = int32(b.layout.Mesh.NY - 1)
	}
	switch whole := out.Lo <= b.layout.Stripe.Lo && out.Hi >= b.layout.Stripe.Hi; {
	case b.direct == nil || blk.Sweeps == 1:
	case whole:
		b.direct.fuse(&p, exchange)
	default:
		if err := b.direct.settle(); err != nil {
			return err
		}
	}
	for _, k := range b.kernels {
		if blk.Sweeps <= k.most {
			return k.launch(s, p)
		}
	}
	return fmt.Errorf("cuda backend: %d sweeps a block, at most %d are possible", blk.Sweeps, b.maxSweeps())
}

// slot returns where the sums of a block lie in the ring, in bytes.
func (b *Backend) slot(blk solver.Block) int {
	return int(blk.Index%ring) * b.maxSweeps() * sumBytes
}

// sendSums sends the sums of a block to the host, behind its sweeps, and clears their place for the block that is next to use it.
func (b *Backend) sendSums(blk solver.Block) error {
	at, n := b.slot(blk), blk.Sweeps*sumBytes
	if err := b.slow.CopyFromDevice(b.pinned, at, b.counts+driver.DevicePtr(at), n); err != nil {
		return err
	}
	if err := b.arrived[blk.Index%ring].Record(b.slow); err != nil {
		return err
	}
	return b.slow.Fill(b.counts+driver.DevicePtr(at), 0, n)
}

// Sums implements solver.Backend.
func (b *Backend) Sums(ctx context.Context, blk solver.Block) ([]solver.Sum, error) {
	if err := b.await(ctx, b.arrived[blk.Index%ring]); err != nil {
		return nil, err
	}
	at := b.slot(blk)
	b.sums = b.sums[:0]
	for i := range blk.Sweeps {
		b.sums = append(b.sums, decodeSum(b.pinned.Bytes()[at+i*sumBytes:]))
	}
	return b.sums, nil
}

// How await looks at an event: without pause for a block of usual length, then with pauses that cost no core. A pause is longer
// than asked for, by up to a millisecond, in which the device may run out of work.
const (
	spinTime = 20 * time.Millisecond
	napTime  = 50 * time.Microsecond
)

// await waits for an event. The device may itself wait for a neighbour that is gone, so the wait ends with ctx, and with a
// *TimeoutError when nothing came within the timeout.
func (b *Backend) await(ctx context.Context, e *driver.Event) error {
	start := time.Now()
	for {
		if done, err := e.Done(); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch waited := time.Since(start); {
		case b.timeout > 0 && waited > b.timeout:
			return &TimeoutError{After: b.timeout}
		case waited > spinTime:
			time.Sleep(napTime)
		}
	}
}

// Undo implements solver.Backend.
func (b *Backend) Undo() error {
	if !b.undoable || b.edged != nil {
		return errors.New("cuda backend: there is no block to undo")
	}
	b.undoable = false
	if err := errors.Join(b.direct.settle(), b.context.Synchronize()); err != nil {
		return err
	}
	b.now, b.next = b.next, b.now
	return nil
}

func (b *Backend) onClose(f func() error) { b.closers = append(b.closers, f) }

// Close gives everything back.
func (b *Backend) Close() error {
	if len(b.closers) == 0 {
		return nil
	}
	errs := []error{b.context.Bind()} // another backend of this goroutine may have let it go
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	b.closers = nil
	return errors.Join(append(errs, b.context.Unbind())...)
}
