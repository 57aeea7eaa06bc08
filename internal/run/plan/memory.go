package plan

import (
	"fmt"
	"runtime"

	"github.com/dustin/go-humanize"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// rankMemory returns, by rank, the memory that its report will state: fields with halos, the source and the fixed
// points of the operator, scratch and, on the CPU, a copy of the stripe for checkpoints.
func rankMemory(cfg configs.Config, at hosts.Places, s *setup.Setup, onGPUs bool) ([]int64, error) {
	type shape struct{ held, threads int } // determines the need of a rank
	known := map[shape]int64{}
	need := make([]int64, s.Ranks)
	for r := range need {
		l, threads := s.Layout(r), threadsOf(cfg.Device, at.Ranks[r].LocalSize)
		like := shape{l.Held().Rows(), threads}
		if _, ok := known[like]; !ok {
			bytes, err := backendBytes(cfg, at, s, r, threads, onGPUs)
			if err != nil {
				return nil, err
			}
			known[like] = bytes
		}
		need[r] = known[like]
		if cfg.Checkpoint.On() && !onGPUs {
			need[r] += savedBytes(cfg.Solver, l)
		}
	}
	return need, nil
}

// threadsOf returns the number of CPU threads that a rank keeps busy on a host with localSize ranks. It assumes that
// other hosts have as many cores as this machine.
func threadsOf(d configs.Device, localSize int) int {
	if d.Threads > 0 {
		return d.Threads
	}
	return cpu.ThreadsOn(float64(runtime.NumCPU()) / float64(localSize))
}

func backendBytes(cfg configs.Config, at hosts.Places, s *setup.Setup, rank, threads int, onGPUs bool) (int64,
	error) {
	name := cfg.Device.Kernel
	if name == "auto" || len(at.Here) == 0 { // other hosts may support kernels that this one does not
		name = ""
	}
	if !onGPUs {
		if _, err := kernel.Find(name, s.Mesh.DType); err != nil {
			return 0, fmt.Errorf("device.kernel %q: %w", name, err)
		}
	}
	switch {
	case s.Levels != nil:
		return s.LevelBytes(cfg, rank, onGPUs)
	case onGPUs:
		return cuda.MemoryBytes(s.Layout(rank), s.Ranks > 1 && cfg.Halo.Transport != "nats"), nil
	}
	return cpu.MemoryBytes(s.Layout(rank), cpu.Options{Threads: threads, Kernel: name})
}

// savedBytes returns the bytes that a rank saves in a checkpoint.
func savedBytes(c configs.Solver, l solver.Layout) int64 {
	bytes := int64(l.Stripe.Rows()) * int64(l.Mesh.RowBytes())
	if c.Accelerated(l.Operator.Fixed != nil || l.Operator.Weighted) {
		return 2 * bytes
	}
	return bytes
}

// BytesHere returns the memory that the ranks on this machine need.
func (p *Plan) BytesHere() int64 {
	return p.sumHere(func(rank int) int64 { return p.Memory[rank] })
}

// copyBytes returns the host memory that the ranks with GPUs on this machine need for checkpoints.
func (p *Plan) copyBytes() int64 {
	return p.sumHere(func(rank int) int64 { return p.Saved[rank] })
}

// sumHere adds up of over the ranks on this machine.
func (p *Plan) sumHere(of func(rank int) int64) (sum int64) {
	for r, at := range p.Ranks {
		if p.Here[at.Host] {
			sum += of(r)
		}
	}
	return sum
}

// small is less memory than ranks need to start. To ask for what there is takes as long as a small run.
const small = 16 << 20

// PicturesHere returns the memory that the ranks on this machine need to read the picture of the problem.
func (p *Plan) PicturesHere() int64 {
	return p.sumHere(func(int) int64 { return p.Pictures })
}

// checkMemory compares the needs of the ranks on this machine with what there is.
func (p *Plan) checkMemory() error {
	if len(p.GPUs) > 0 {
		if err := p.checkDeviceMemory(); err != nil {
			return err
		}
	}
	pictures, remedy := p.PicturesHere(), "take a smaller grid, or more machines"
	need := pictures
	if !p.OnGPUs {
		need += p.BytesHere()
	}
	if need < small {
		return nil
	}
	if pictures > 0 {
		remedy += fmt.Sprintf(", or a smaller picture: to read it, the ranks take %s of that",
			humanize.IBytes(uint64(pictures)))
	}
	if err := configs.CheckMemory(need); err != nil {
		return fmt.Errorf("grid.nx %d, grid.ny %d: %w; %s", p.Mesh.NX, p.Mesh.NY, err, remedy)
	}
	return nil
}

// checkDeviceMemory compares the needs of the ranks on each GPU with the GPU's total memory. Whether enough of it is
// free turns out when the ranks start.
func (p *Plan) checkDeviceMemory() error {
	need := make([]int64, len(p.GPUs))
	for r, c := range p.Choices {
		if c != nil {
			need[c.Index] += p.Memory[r]
		}
	}
	for i, gpu := range p.GPUs {
		if need[i] > gpu.TotalBytes {
			return fmt.Errorf("grid.nx %d, grid.ny %d: memory of GPU %d (%s): %s are needed and there are %s",
				p.Mesh.NX, p.Mesh.NY, i, gpu.Name,
				humanize.IBytes(uint64(need[i])), humanize.IBytes(uint64(gpu.TotalBytes)))
		}
	}
	return nil
}
