package cuda

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// ring is the number of passes whose sums may be in flight to the host.
const ring = 4

// lag is that of the Limits: Sums waits for the device.
const lag = 1

// Backend implements solver.Backend on one GPU. All calls must come from the goroutine that called New, which stays on
// its thread until Close.
//
// Two streams order the work of a pass. The stream of high priority, fast, fills the halos of now, sweeps the edges of
// next, and then does what Exchange puts into it. The other stream, slow, sweeps the interior of next and copies the
// sums to the host. The interior reads no halo unless it includes the edges, so it runs while rows travel.
type Backend struct {
	layout  solver.Layout
	device  *driver.Device
	options Options
	context *driver.Context
	module  *driver.Module
	kernels []*kernel

	now, next field
	fast      *driver.Stream // edges and halos
	slow      *driver.Stream // the interior
	halosIn   *driver.Event  // on fast: the halos of now are filled, and the edges of the previous pass are swept
	edgesOut  *driver.Event  // on fast: the edges of next are swept
	swept     *driver.Event  // on slow: the interior of now is swept
	// interiorPending is set if slow holds the interior of a pass that fast has not waited for.
	interiorPending bool

	counts  driver.DevicePtr    // ring x MaxSweeps x sumWords
	pinned  *driver.HostMemory  // counts on the host
	before  []byte              // counts as they were before the pass that now uses the place in the ring
	arrived [ring]*driver.Event // on slow: the sums at this place are on the host
	staging *driver.HostMemory  // rows between host and device
	target  *driver.HostMemory  // host memory pinned by Pin; nil if there is none
	emptied *driver.Event       // end of the stream that awaitAll waits for
	bias    [limbs]float64
	flags   driver.DevicePtr // see peer.go; 0 without peers

	// Edges sweeps the whole stripe in passes of at least sweepAllFrom sweeps. NewExchange sets it.
	sweepAllFrom int
	posted       solver.ExchangeNumber // the newest exchange
	peers        []*Peer               // neighbours that write into this rank's memory
	direct       *direct               // nil if kernels do not move rows
	calls        solver.Calls
	middle       solver.Stripe // the rows that Edges has left to Interior
	sums         []solver.Sum
	bytes        int64
	closers      []func() error
}

func (b *Backend) maxSweeps() int { return MaxSweeps(b.layout.Mesh.DType) }

// Limits implements solver.Backend.
func (b *Backend) Limits() solver.Limits {
	return solver.Limits{MaxSweeps: b.maxSweeps(), Lag: lag, Bytes: b.bytes}
}

// Describe names the GPU.
func (b *Backend) Describe() string { return fmt.Sprintf("cuda %d, %s", b.device.Index, b.device.Name) }

// Edges implements solver.Backend.
func (b *Backend) Edges(ctx context.Context, sp solver.Pass) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.calls.Edges(sp); err != nil {
		return err
	}
	if err := b.takePlace(ctx, sp); err != nil {
		return err
	}
	s, middle := b.layout.Stripe, b.layout.Middle()
	if sp.Sweeps >= b.sweepAllFrom {
		middle = solver.Stripe{Lo: s.Hi, Hi: s.Hi}
	}
	edges := [2]solver.Stripe{{Lo: s.Lo, Hi: middle.Lo}, {Lo: middle.Hi, Hi: s.Hi}}
	if err := b.settleHalos(sp, edges[0]); err != nil {
		return err
	}
	if middle.Rows() > 0 {
		if err := b.halosIn.Record(b.fast); err != nil {
			return err
		}
	}
	if b.interiorPending { // otherwise all passes are in this stream, and a wait would cost each two microseconds
		if err := b.fast.Wait(b.swept); err != nil {
			return err
		}
		b.interiorPending = false
	}
	for _, p := range b.peers {
		if err := p.allow(); err != nil {
			return err
		}
	}
	for _, edge := range edges {
		if edge.Rows() <= 0 {
			continue
		}
		if err := b.sweep(b.fast, sp, edge, edge, true); err != nil {
			return err
		}
	}
	b.middle = middle
	if err := b.edgesOut.Record(b.fast); err != nil {
		return err
	}
	b.calls.Done()
	return nil
}

// fuses reports whether the kernel of pass sp over the rows out of next itself waits for halos and hands edges on.
func (b *Backend) fuses(sp solver.Pass, out solver.Stripe) bool {
	return b.direct != nil && sp.Sweeps > 1 && out.Lo <= b.layout.Stripe.Lo && out.Hi >= b.layout.Stripe.Hi
}

// settleHalos makes the fast stream wait for the halos of now, unless the kernel of pass sp over the rows out of next
// waits itself.
func (b *Backend) settleHalos(sp solver.Pass, out solver.Stripe) error {
	if b.fuses(sp, out) {
		return nil
	}
	return b.direct.settle()
}

// Interior implements solver.Backend.
func (b *Backend) Interior(ctx context.Context, sp solver.Pass) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	edged, err := b.calls.Interior(sp)
	if err != nil {
		return err
	}
	out, count := b.middle, b.middle
	if !edged {
		if err := b.takePlace(ctx, sp); err != nil {
			return err
		}
		out, count = b.layout.Reach(sp.Margin), b.layout.Stripe
		if err := errors.Join(b.settleHalos(sp, out), b.halosIn.Record(b.fast)); err != nil {
			return err
		}
	}
	if out.Rows() > 0 {
		if err := b.slow.Wait(b.halosIn); err != nil {
			return err
		}
		b.interiorPending = true
		if err := errors.Join(b.sweep(b.slow, sp, out, count, false), b.swept.Record(b.slow)); err != nil {
			return err
		}
	}
	if edged {
		if err := b.slow.Wait(b.edgesOut); err != nil {
			return err
		}
	}
	b.now, b.next = b.next, b.now
	if err := b.sendSums(sp); err != nil {
		return err
	}
	b.calls.Done()
	return nil
}

// sweep launches pass sp over the rows out of next and sums the squares of the rows in count. exchange tells whether an
// exchange follows.
func (b *Backend) sweep(s *driver.Stream, sp solver.Pass, out, count solver.Stripe, exchange bool) error {
	p := pass{
		now: b.now.base, next: b.next.base, sums: b.counts + driver.DevicePtr(b.slot(sp)), bias: b.bias,
		pitch: int32(b.now.pitch / b.layout.Mesh.DType.Size()), nx: int32(b.layout.Mesh.NX),
		rowLo: int32(b.now.rows.Lo), rowHi: int32(b.now.rows.Hi), outLo: int32(out.Lo), outHi: int32(out.Hi),
		countLo: int32(count.Lo), countHi: int32(count.Hi), fixTop: nowhere, fixBottom: -nowhere,
		sweeps: int32(sp.Sweeps),
	}
	if !b.layout.Neighbour[solver.Top] {
		p.fixTop = 0
	}
	if !b.layout.Neighbour[solver.Bottom] {
		p.fixBottom = int32(b.layout.Mesh.NY - 1)
	}
	if b.fuses(sp, out) {
		b.direct.fuse(&p, exchange)
	}
	for _, k := range b.kernels {
		if did, err := k.launch(s, p); did || err != nil {
			return err
		}
	}
	return fmt.Errorf("cuda backend: no kernel does %d sweeps a pass with %d bytes of shared memory", sp.Sweeps,
		b.device.SharedBytes)
}

// Undo implements solver.Backend.
func (b *Backend) Undo() error {
	if err := b.calls.Undo(); err != nil {
		return err
	}
	if err := errors.Join(b.direct.settle(), b.context.Synchronize()); err != nil {
		return err
	}
	b.now, b.next = b.next, b.now
	b.calls.Done()
	return nil
}
