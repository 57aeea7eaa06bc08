package main

import (
	"context"
	"math"

	"jacobi/cuda"
	"jacobi/internal/cpu"
	"jacobi/solver"
)

// deviceName returns the kind of device that sweeps, as ranks tell each other.
func (r *rank) deviceName() string {
	if r.sweepsOnGPU() {
		return "cuda"
	}
	return "cpu"
}

// preferredDepth returns the halo depth that suits the device.
func (r *rank) preferredDepth(m solver.Mesh) int {
	minRows := solver.MinRows(m.NY, r.id.Size)
	if r.sweepsOnGPU() {
		return cuda.PreferredDepth(m, minRows)
	}
	return cpu.PreferredDepth(m, minRows)
}

// mostSweeps returns the most sweeps of a pass on the device.
func (r *rank) mostSweeps(m solver.Mesh) int {
	if r.sweepsOnGPU() {
		return cuda.MaxSweeps(m.DType)
	}
	return math.MaxInt32 // whatever the depth
}

// openBackend opens the backend on the device that was chosen.
func (r *rank) openBackend(context.Context) error {
	if r.sweepsOnGPU() {
		b, err := cuda.New(r.gpus.Driver, r.layout,
			cuda.Options{Device: r.chosen.Index, Sole: r.soleGPU, Timeout: r.cfg.Halo.Timeout})
		if err != nil {
			return err
		}
		r.backend, r.gpu, r.describe = b, b, b.Describe()
		r.onClose(b.Close)
		return nil
	}
	kernel := r.cfg.Device.Kernel
	if kernel == "auto" {
		kernel = ""
	}
	b, err := cpu.New(r.layout, cpu.Options{Threads: r.threads(), Kernel: kernel, ThreadsPerCore: r.threadsPerCore()})
	if err != nil {
		return err
	}
	r.backend, r.describe, r.kernel = b, b.Describe(), b.Kernel()
	r.onClose(b.Close)
	return nil
}
