package cuda

import (
	"errors"
	"fmt"
	"math"
	"time"

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

// New opens the GPU and allocates the fields.
func New(d *driver.Driver, l solver.Layout, o Options) (*Backend, error) {
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
	b := &Backend{
		dev:  &device{layout: l, gpu: &devices[o.Device], timeout: o.Timeout},
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
