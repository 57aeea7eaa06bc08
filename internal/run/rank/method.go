package rank

import (
	"context"

	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/run/method"
)

// opened is the method of the run on this rank's device.
type opened struct {
	method method.Method
}

// openMethod chooses this rank's GPU, if one sweeps, and opens the method.
func (r *run) openMethod(ctx context.Context) (err error) {
	if !r.Ordered { // a session takes its GPU once
		if err := r.takeGPU(ctx); err != nil {
			return err
		}
	}
	o := method.Options{Setup: r.Setup, Layout: r.layout, Rank: r.id.Rank, Comm: r.comm, Problem: r.problem,
		CPU: r.cpuOptions(), CG: r.accelerated(), Timeout: r.fileTimeout(), OnClose: r.open.add,
		Full: r.Config.Solver.FullStart() && r.Config.Checkpoint.Resume == ""}
	if r.sweepsOnGPU() {
		o.Driver = r.gpus.Driver
		o.GPU = cuda.Options{Device: r.chosen.Index, Sole: r.sole, Timeout: r.Config.Halo.Timeout}
	}
	r.method, err = method.Open(ctx, o)
	return err
}

// accelerated reports whether conjugate gradients accelerate the cycles.
func (r *run) accelerated() bool {
	o := r.layout.Operator
	return r.Config.Solver.Accelerated(o.Fixed != nil || o.Weighted)
}

// cpuOptions returns the options of a device that is the CPU.
func (r *run) cpuOptions() cpu.Options {
	o := cpu.Options{Threads: r.threads(), Kernel: r.Config.Device.Kernel, ThreadsPerCore: r.threadsPerCore()}
	if o.Kernel == "auto" {
		o.Kernel = "" // the best
	}
	return o
}
