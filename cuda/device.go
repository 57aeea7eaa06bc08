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

// chunkBytes is the size of the pinned memory through which rows travel between host and device.
const chunkBytes = 8 << 20

// device is a stripe on a GPU: its memory, the streams that work on it, and the kernels' code. Backend and Exchange
// share it. Backend alone swaps now and next.
//
// Two streams order the work of a pass. The stream of high priority, fast, fills the halos of now, sweeps the edges of
// next, and then does what Exchange puts into it. The other stream, slow, sweeps the interior of next and copies the
// sums to the host. The interior reads no halo unless it includes the edges, so it runs while rows travel.
type device struct {
	layout  solver.Layout
	gpu     *driver.Device
	timeout time.Duration // of a pass; 0: none
	context *driver.Context
	module  *driver.Module

	now, next field
	fast      *driver.Stream     // edges and halos
	slow      *driver.Stream     // the interior
	emptied   *driver.Event      // end of the stream that awaitAll waits for
	staging   *driver.HostMemory // rows between host and device
	staged    [4]*driver.Event   // ends of the copies from each quarter of it
	target    *driver.HostMemory // host memory pinned by Backend.Pin; nil if there is none
	flags     flags              // none without peers
	times     *Timeline          // nil unless the work is timed

	bytes   int64
	closers []func() error
}

// retain opens the GPU.
func (d *device) retain() (err error) {
	if d.context, err = d.gpu.Retain(driver.ScheduleAuto); err != nil {
		return err
	}
	d.onClose(d.context.Close)
	if err := d.context.Bind(); err != nil {
		return err
	}
	d.onClose(d.context.Unbind)
	return nil
}

// loadModule opens the GPU with a module image.
func (d *device) loadModule(image []byte) (err error) {
	if err := d.retain(); err != nil {
		return err
	}
	d.module, err = d.context.Load(image)
	return err
}

// open opens the GPU and allocates the fields. After an error the caller closes the device too.
func (d *device) open(ptx bool) (err error) {
	if err := d.loadModule(sweepsOf(d.layout).on(d.gpu, ptx)); err != nil {
		return err
	}
	if err := d.openStreams(); err != nil {
		return err
	}
	return d.allocate()
}

func (d *device) openStreams() error {
	lowest, highest, err := d.context.Priorities()
	if err != nil {
		return err
	}
	for _, s := range []struct {
		stream   **driver.Stream
		priority int
	}{{&d.fast, highest}, {&d.slow, lowest}} {
		if *s.stream, err = d.context.NewStream(s.priority); err != nil {
			return err
		}
		d.onClose((*s.stream).Close)
	}
	return d.newEvents(&d.emptied, &d.staged[0], &d.staged[1], &d.staged[2], &d.staged[3])
}

// newEvents creates events.
func (d *device) newEvents(events ...**driver.Event) (err error) {
	for _, e := range events {
		if *e, err = d.context.NewEvent(false); err != nil {
			return err
		}
		d.onClose((*e).Close)
	}
	return nil
}

func (d *device) allocate() (err error) {
	rows, pitch := d.layout.Held(), pitchOf(d.layout.Mesh)
	for i, f := range []*field{&d.now, &d.next} {
		*f = field{rows: rows, pitch: pitch, index: i}
		if f.base, err = d.alloc(f.bytes()); err != nil {
			return fmt.Errorf("%s for two fields of %d rows of %d bytes: %w", humanize.IBytes(uint64(2*f.bytes())),
				rows.Rows(), pitch, err)
		}
	}
	width := d.layout.Mesh.RowBytes()
	d.staging, err = d.allocHost(max(chunkBytes/width*width, 2*d.layout.Depth*width))
	return err
}

// alloc allocates n bytes of the GPU's memory until close.
func (d *device) alloc(n int64) (driver.DevicePtr, error) {
	p, err := d.context.Alloc(n)
	if err != nil {
		return 0, err
	}
	d.bytes += n
	d.onClose(func() error { return d.context.Free(p) })
	return p, nil
}

// allocHost allocates n bytes of pinned host memory until close.
func (d *device) allocHost(n int) (*driver.HostMemory, error) {
	h, err := d.context.AllocHost(n)
	if err != nil {
		return nil, err
	}
	d.onClose(h.Free)
	return h, nil
}

func (d *device) onClose(f func() error) { d.closers = append(d.closers, f) }

// close frees everything. A second call does nothing.
func (d *device) close() error {
	if len(d.closers) == 0 {
		return nil
	}
	errs := []error{d.context.Bind()} // another backend of this goroutine may have unbound it
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(append(errs, d.context.Unbind())...)
}

// maxSweeps returns the largest number of sweeps in a pass.
func (d *device) maxSweeps() int { return MaxSweeps(d.layout.Mesh) }

// deep reports whether some passes do not end in an exchange. Passes that end early for a sample do not count: there
// all ranks wait for each other.
func (d *device) deep() bool {
	most := d.maxSweeps()
	if n := d.layout.MaxSweeps; n > 0 {
		most = min(most, n)
	}
	return d.layout.Depth > most
}

// Options choose a GPU and how it is used.
type Options struct {
	Device  int           // index among the GPUs that CUDA_VISIBLE_DEVICES leaves visible
	Sole    bool          // no other rank uses this GPU, so kernels may wait for neighbours
	Timeout time.Duration // of a pass, waits for neighbours included; 0: none
	PTX     bool          // let the driver compile the kernels even if there is machine code for the GPU
}

// gpu returns the GPU.
func (o Options) gpu(d *driver.Driver) (*driver.Device, error) {
	devices, err := d.Devices()
	if err != nil {
		return nil, err
	}
	if o.Device < 0 || o.Device >= len(devices) {
		return nil, fmt.Errorf("device %d: there are %d", o.Device, len(devices))
	}
	return &devices[o.Device], nil
}

// New opens the GPU and allocates the fields.
func New(d *driver.Driver, l solver.Layout, o Options) (*Backend, error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	gpu, err := o.gpu(d)
	if err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	b := &Backend{
		dev:  &device{layout: l, gpu: gpu, timeout: o.Timeout},
		sole: o.Sole, bias: biases(l.Magnitude),
	}
	b.connect(alone{}, math.MaxInt)
	if err := b.open(o.PTX); err != nil {
		err = fmt.Errorf("cuda backend on device %d (%s): %w", o.Device, b.dev.gpu.Name, err)
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Backend) open(ptx bool) error {
	if err := b.dev.open(ptx); err != nil {
		return err
	}
	var err error
	if b.operator, err = b.dev.openOperator(); err != nil {
		return err
	}
	if b.kernels, err = b.loadKernels(b.dev.module, shapesFor(b.dev.layout)); err != nil {
		return err
	}
	if err := b.dev.newEvents(&b.halosIn, &b.edgesOut, &b.swept, &b.arrived[0], &b.arrived[1], &b.arrived[2],
		&b.arrived[3]); err != nil {
		return err
	}
	n := countBytes(b.dev.layout.Mesh)
	if b.counts, err = b.dev.alloc(int64(n)); err != nil {
		return err
	}
	b.before = make([]byte, n)
	b.pinned, err = b.dev.allocHost(n)
	return err
}

// loadKernels loads the kernels of the shapes from a module.
func (b *Backend) loadKernels(m *driver.Module, shapes []shape) (kernels []*kernel, err error) {
	for _, s := range shapes {
		k, err := loadKernel(m, b.dev.gpu, s, b.operator.terms)
		if err != nil {
			return nil, err
		}
		kernels = append(kernels, k)
	}
	return kernels, nil
}

// countBytes returns the size of the sums in the ring.
func countBytes(m solver.Mesh) int { return ring * MaxSweeps(m) * sumBytes }

// MemoryBytes returns the bytes of GPU memory that New allocates, and OpenWindow if there are peers.
func MemoryBytes(l solver.Layout, peers bool) int64 {
	bytes := 2*field{rows: l.Held(), pitch: pitchOf(l.Mesh)}.bytes() + int64(countBytes(l.Mesh)) + operatorBytes(l)
	if peers {
		bytes += flagsBytes
	}
	return bytes
}

// Close frees all resources.
func (b *Backend) Close() error { return b.dev.close() }

// Figures of one H200: see "Single node" in docs/results.md. They give 1.4 us a sweep at 1024^2, 2.6 us at 2048^2 and
// 100 us at 16384^2 in float32; 1.4 to 1.6, 2.7 and 98 us were measured.
const (
	sweepSeconds = 1e-6
	points32     = 2.7e12 // points a second
	points64     = 1.55e12
)

// Pace returns the estimated time of a sweep on a GPU, without exchanges: fixed seconds, and a second for every rate
// points.
func Pace(d solver.DType) (fixed, rate float64) {
	if d == solver.Float64 {
		return sweepSeconds, points64
	}
	return sweepSeconds, points32
}

const (
	copyBytes  = 1 << 30 // size of one copy, far more than a cache holds; less where memory is short
	copyTries  = 20
	copyPasses = 4 // copies in a try
)

// CopyRate measures how fast the GPU copies its own memory with cuMemcpyDtoD, in bytes read and written a second, and
// returns the fastest of several tries. The rate is the roofline of a pass of one sweep. CopyRate allocates up to 2 GiB
// of the GPU's memory and frees it.
func CopyRate(ctx context.Context, gpu *driver.Device) (float64, error) {
	d := &device{gpu: gpu}
	rate, err := d.copyRate(ctx)
	if err := errors.Join(err, d.close()); err != nil {
		return 0, fmt.Errorf("copy rate of %v: %w", gpu, err)
	}
	return rate, nil
}

func (d *device) copyRate(ctx context.Context) (rate float64, err error) {
	if err := d.retain(); err != nil {
		return 0, err
	}
	free, _, err := d.context.Memory()
	if err != nil {
		return 0, err
	}
	stream, err := d.context.NewStream(0)
	if err != nil {
		return 0, err
	}
	d.onClose(stream.Close)
	bytes := min(copyBytes, free/4)
	var field [2]driver.DevicePtr
	var mark [2]*driver.Event
	for i := range field {
		if field[i], err = d.alloc(bytes); err != nil {
			return 0, err
		}
		if mark[i], err = d.context.NewEvent(true); err != nil {
			return 0, err
		}
		d.onClose(mark[i].Close)
		if err := stream.Fill(field[i], 1, int(bytes)); err != nil {
			return 0, err
		}
	}
	for range copyTries {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := mark[0].Record(stream); err != nil {
			return 0, err
		}
		for range copyPasses {
			if err := stream.CopyOnDevice(field[0], field[1], int(bytes)); err != nil {
				return 0, err
			}
		}
		if err := errors.Join(mark[1].Record(stream), mark[1].Synchronize()); err != nil {
			return 0, err
		}
		took, err := driver.Elapsed(mark[0], mark[1])
		if err != nil {
			return 0, err
		}
		rate = max(rate, 2*copyPasses*float64(bytes)/took.Seconds())
	}
	return rate, nil
}
