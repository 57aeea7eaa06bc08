package cuda

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Options choose a GPU and how it is used.
type Options struct {
	Device  int           // index among the GPUs that CUDA_VISIBLE_DEVICES leaves visible
	Sole    bool          // no other rank uses this GPU, so kernels may wait for neighbours
	Timeout time.Duration // of a pass, waits for neighbours included; 0: none
	PTX     bool          // let the driver compile the kernels even if there is machine code for the GPU
}

// chunkBytes is the size of the pinned memory through which rows travel between host and device.
const chunkBytes = 8 << 20

// New opens the GPU and allocates the fields.
func New(d *driver.Driver, l solver.Layout, o Options) (b *Backend, err error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	if err := supported(l); err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	devices, err := d.Devices()
	if err != nil {
		return nil, fmt.Errorf("cuda backend: %w", err)
	}
	if o.Device < 0 || o.Device >= len(devices) {
		return nil, fmt.Errorf("cuda backend: device %d: there are %d", o.Device, len(devices))
	}
	b = &Backend{layout: l, device: &devices[o.Device], options: o, sweepAllFrom: math.MaxInt,
		bias: biases(l.Magnitude), calls: solver.NewCalls("cuda backend", l,
			solver.Limits{MaxSweeps: MaxSweeps(l.Mesh.DType), Lag: lag})}
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

// supported returns an error for an operator or walls that the kernels do not compute yet.
func supported(l solver.Layout) error {
	if !l.Operator.Plain() || l.Operator.Fixed != nil ||
		l.Mesh.Walls != (solver.Walls{}) && l.Mesh.Walls != solver.WrapRows(true) {
		return errors.New("sources, screening, unequal spacings, fixed points and these walls: not supported yet")
	}
	return nil
}

func (b *Backend) openKernels() (err error) {
	if b.module, err = b.context.Load(image(b.device, b.options.PTX)); err != nil {
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
	for _, e := range []**driver.Event{&b.halosIn, &b.edgesOut, &b.swept, &b.emptied, &b.arrived[0], &b.arrived[1],
		&b.arrived[2], &b.arrived[3]} {
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
			return fmt.Errorf("%s for two fields of %d rows of %d bytes: %w", humanize.IBytes(uint64(2*f.bytes())),
				f.rows.Rows(), f.pitch, err)
		}
		p.base = base
	}
	n := countBytes(b.layout.Mesh)
	var err error
	if b.counts, err = b.alloc(int64(n)); err != nil {
		return err
	}
	if b.pinned, err = b.context.AllocHost(n); err != nil {
		return err
	}
	b.onClose(b.pinned.Free)
	b.before = make([]byte, n)
	depth := b.layout.Depth * b.layout.Mesh.RowBytes()
	if b.staging, err = b.context.AllocHost(max(chunkBytes/b.layout.Mesh.RowBytes()*b.layout.Mesh.RowBytes(),
		2*depth)); err != nil {
		return err
	}
	b.onClose(b.staging.Free)
	return nil
}

// countBytes returns the size of the sums in the ring.
func countBytes(m solver.Mesh) int { return ring * MaxSweeps(m.DType) * sumBytes }

// MemoryBytes returns the bytes of GPU memory that New allocates, and OpenFlags if there are peers.
func MemoryBytes(l solver.Layout, peers bool) int64 {
	bytes := 2*field{rows: l.Held(), pitch: pitchOf(l.Mesh)}.bytes() + int64(countBytes(l.Mesh))
	if peers {
		bytes += flagsBytes
	}
	return bytes
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

func (b *Backend) onClose(f func() error) { b.closers = append(b.closers, f) }

// Close frees all resources.
func (b *Backend) Close() error {
	if len(b.closers) == 0 {
		return nil
	}
	errs := []error{b.context.Bind()} // another backend of this goroutine may have unbound it
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	b.closers = nil
	return errors.Join(append(errs, b.context.Unbind())...)
}
