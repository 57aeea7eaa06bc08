package main

import (
	"context"
	"math"

	"jacobi/cuda"
	"jacobi/internal/cpu"
	"jacobi/solver"
)

// deviceName returns the kind of this rank's device, as the roster names it.
func (r *rank) deviceName() string {
	if r.sweepsOnGPU() {
		return "cuda"
	}
	return "cpu"
}

// preferredDepth returns the halo depth that suits this rank's device.
func (r *rank) preferredDepth(m solver.Mesh) int {
	minRows := solver.MinRows(m.Interior(), r.id.Size)
	if r.sweepsOnGPU() {
		return cuda.PreferredDepth(m, minRows)
	}
	return cpu.PreferredDepth(m, minRows)
}

// maxPassSweeps returns the largest number of sweeps that the device does in a pass.
func (r *rank) maxPassSweeps(m solver.Mesh) int {
	if r.sweepsOnGPU() {
		return cuda.MaxSweeps(m.DType)
	}
	return math.MaxInt32 // the CPU has no limit
}

// openBackend opens the backend on the chosen device.
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
