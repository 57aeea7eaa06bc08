package cuda

import (
	"errors"
	"fmt"
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
	staged    [2]*driver.Event   // ends of the copies from each half of it
	target    *driver.HostMemory // host memory pinned by Backend.Pin; nil if there is none
	flags     flags              // none without peers
	times     *Timeline          // nil unless the work is timed

	bytes   int64
	closers []func() error
}

// loadModule opens the GPU with a module image.
func (d *device) loadModule(image []byte) (err error) {
	if d.context, err = d.gpu.Retain(driver.ScheduleAuto); err != nil {
		return err
	}
	d.onClose(d.context.Close)
	if err := d.context.Bind(); err != nil {
		return err
	}
	d.onClose(d.context.Unbind)
	d.module, err = d.context.Load(image)
	return err
}

// open opens the GPU and allocates the fields. After an error the caller closes the device too.
func (d *device) open(ptx bool) (err error) {
	if err := d.loadModule(image(d.layout, d.gpu, ptx)); err != nil {
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
	return d.newEvents(&d.emptied, &d.staged[0], &d.staged[1])
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
	if n := d.layout.Sweeps; n > 0 {
		most = min(most, n)
	}
	return d.layout.Depth > most
}
