package main

import (
	"fmt"
	"runtime"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/internal/cpu"
	"jacobi/solver"
)

// layout returns the layout of a rank's stripe.
func (p *plan) layout(rank int) solver.Layout {
	l := solver.Layout{Mesh: p.mesh, Stripe: p.stripes[rank], Depth: p.depth}
	l.Neighbour[solver.Top] = rank > 0 || p.mesh.PeriodicRows()
	l.Neighbour[solver.Bottom] = rank < len(p.stripes)-1 || p.mesh.PeriodicRows()
	return l
}

// sweepOnGPUs reports whether the ranks sweep on GPUs, which may all be on other hosts.
func (p *plan) sweepOnGPUs() bool { return len(p.gpus) > 0 || p.cfg.Device.Backend == "cuda" }

// threads returns the number of CPU threads that a rank keeps busy. It assumes that other hosts have as many cores as
// this machine.
func (p *plan) threads(rank int) int {
	if n := p.cfg.Device.Threads; n > 0 {
		return n
	}
	return cpu.ThreadsOn(float64(runtime.NumCPU()) / float64(p.ranks[rank].LocalSize))
}

// workOutMemory returns, by rank, the memory that its report will state: fields with halos, scratch and, on the CPU, a
// copy of the stripe for checkpoints.
func (p *plan) workOutMemory() ([]int64, error) {
	type shape struct{ held, threads int } // determines the need of a rank
	known := map[shape]int64{}
	need := make([]int64, len(p.ranks))
	for r := range p.ranks {
		l, threads := p.layout(r), p.threads(r)
		at := shape{l.Held().Rows(), threads}
		if _, ok := known[at]; !ok {
			bytes, err := p.backendBytes(l, threads)
			if err != nil {
				return nil, err
			}
			known[at] = bytes
		}
		need[r] = known[at] + p.checkpointBytes(r)
	}
	return need, nil
}

func (p *plan) backendBytes(l solver.Layout, threads int) (int64, error) {
	if p.sweepOnGPUs() {
		return cuda.MemoryBytes(l, len(p.ranks) > 1 && p.cfg.Halo.Transport != "nats"), nil
	}
	kernel := p.cfg.Device.Kernel
	if kernel == "auto" || len(p.here) == 0 { // other hosts may support kernels that this one does not
		kernel = ""
	}
	bytes, err := cpu.MemoryBytes(l, cpu.Options{Threads: threads, Kernel: kernel})
	if err != nil {
		return 0, fmt.Errorf("device.kernel %q: %w", p.cfg.Device.Kernel, err)
	}
	return bytes, nil
}

// hereBytes returns the memory that the ranks on this machine need.
func (p *plan) hereBytes() int64 {
	var total int64
	for r, at := range p.ranks {
		if p.here[at.Host] {
			total += p.memory[r]
		}
	}
	return total
}

func (p *plan) checkMemory() error {
	if len(p.gpus) > 0 {
		return p.checkDeviceMemory()
	}
	if p.sweepOnGPUs() {
		return nil // GPUs of other hosts, or GPUs that cannot be opened
	}
	if err := configs.CheckMemory(p.hereBytes()); err != nil {
		return fmt.Errorf("grid.nx %d, grid.ny %d: %w", p.mesh.NX, p.mesh.NY, err)
	}
	return nil
}
