package rank

import (
	"context"

	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// sweeper is what sweeps this rank's rows.
type sweeper struct {
	chosen   *output.GPUReport // nil if the CPU sweeps
	sole     bool              // no other rank uses the GPU
	field    field             // this rank's rows
	backend  solver.Backend    // nil for multigrid
	levels   *levels           // nil for Jacobi's method
	gpu      *cuda.Backend     // backend, if that is a *cuda.Backend
	describe string            // of the device, for the report
	kernel   string            // of the CPU; "" on a GPU
}

// field is the rows of the field that a rank owns.
type field interface {
	Load(ctx context.Context, rows solver.RowSource) error
	output.Rows
}

// openBackend chooses this rank's GPU, if one sweeps, and opens the backend.
func (r *run) openBackend(ctx context.Context) error {
	if err := r.takeGPU(ctx); err != nil {
		return err
	}
	if r.Levels != nil {
		return r.openLevels(ctx)
	}
	if r.sweepsOnGPU() {
		b, err := cuda.New(r.gpus.Driver, r.layout,
			cuda.Options{Device: r.chosen.Index, Sole: r.sole, Timeout: r.Config.Halo.Timeout})
		if err != nil {
			return err
		}
		r.open.add(b.Close)
		r.field, r.backend, r.gpu, r.describe = b, b, b, b.Describe()
		return nil
	}
	b, err := cpu.New(r.layout, r.cpuOptions())
	if err != nil {
		return err
	}
	r.open.add(b.Close)
	r.field, r.backend, r.describe, r.kernel = b, b, b.Describe(), b.Kernel()
	return nil
}

// cpuOptions returns the options of a backend on the CPU.
func (r *run) cpuOptions() cpu.Options {
	return cpu.Options{Threads: r.threads(), Kernel: r.cpuKernel(), ThreadsPerCore: r.threadsPerCore()}
}

// cpuKernel returns the CPU kernel of device.kernel; "" for the best.
func (o Options) cpuKernel() string {
	if o.Config.Device.Kernel == "auto" {
		return ""
	}
	return o.Config.Device.Kernel
}
