package rank

import (
	"context"

	"jacobi/cuda"
	"jacobi/internal/cpu"
	"jacobi/internal/output"
	"jacobi/solver"
)

// opened is a rank whose backend is open.
type opened struct {
	*laidOut
	takenGPU
	field    field          // this rank's rows
	backend  solver.Backend // nil for multigrid
	levels   *levels        // nil for Jacobi's method
	gpu      *cuda.Backend  // backend, if that is a *cuda.Backend
	describe string         // of the device, for the report
	kernel   string         // of the CPU; "" on a GPU
}

// field is the rows of the field that a rank owns.
type field interface {
	Load(ctx context.Context, rows solver.RowSource) error
	output.Rows
}

// openBackend chooses this rank's GPU, if one sweeps, and opens the backend.
func (l *laidOut) openBackend(ctx context.Context, open *closers) (*opened, error) {
	taken, err := l.takeGPU(ctx)
	if err != nil {
		return nil, err
	}
	o := &opened{laidOut: l, takenGPU: taken}
	if l.Config.Solver.Multigrid() {
		return o, o.openLevels(ctx, open)
	}
	if l.sweepsOnGPU() {
		b, err := cuda.New(l.gpus.Driver, l.layout,
			cuda.Options{Device: taken.chosen.Index, Sole: taken.sole, Timeout: l.Config.Halo.Timeout})
		if err != nil {
			return nil, err
		}
		open.add(b.Close)
		o.field, o.backend, o.gpu, o.describe = b, b, b, b.Describe()
		return o, nil
	}
	b, err := cpu.New(l.layout, l.cpuOptions())
	if err != nil {
		return nil, err
	}
	open.add(b.Close)
	o.field, o.backend, o.describe, o.kernel = b, b, b.Describe(), b.Kernel()
	return o, nil
}

// cpuOptions returns the options of a backend on the CPU.
func (j *joined) cpuOptions() cpu.Options {
	return cpu.Options{Threads: j.threads(), Kernel: j.cpuKernel(), ThreadsPerCore: j.threadsPerCore()}
}

// cpuKernel returns the CPU kernel of device.kernel; "" for the best.
func (p *prepared) cpuKernel() string {
	if p.Config.Device.Kernel == "auto" {
		return ""
	}
	return p.Config.Device.Kernel
}
