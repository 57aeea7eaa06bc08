package scaling

import (
	"context"
	"fmt"
	"runtime"

	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/run/plan"
)

// CopyRates are the speeds of copies that were measured, in bytes read and written a second. The zero value holds none.
type CopyRates struct {
	cpu map[cpuCopy]float64
	gpu map[int]float64 // by CUDA's index
}

// cpuCopy holds the parameters of a copy on the CPU.
type cpuCopy struct{ bytes, threads int }

// Of returns the speed of a copy on the devices of p; 0 if ranks are on other machines, where it cannot be measured.
func (c *CopyRates) Of(ctx context.Context, p *plan.Plan) (rate float64, err error) {
	switch {
	case len(p.Here) < len(p.Names()):
		return 0, nil
	case len(p.GPUs) > 0:
		rate, err = c.ofGPUs(ctx, p)
	default:
		rate, err = c.ofCPU(ctx, cpuCopyOf(p))
	}
	if err != nil {
		return 0, fmt.Errorf("measure the roofline: %w", err)
	}
	return rate, nil
}

// ofGPUs returns the sum over the GPUs that ranks use.
func (c *CopyRates) ofGPUs(ctx context.Context, p *plan.Plan) (sum float64, err error) {
	if c.gpu == nil {
		c.gpu = map[int]float64{}
	}
	counted := map[int]bool{}
	for _, choice := range p.Choices {
		i := choice.Index
		if counted[i] {
			continue
		}
		counted[i] = true
		if _, known := c.gpu[i]; !known {
			if c.gpu[i], err = cuda.CopyRate(ctx, &p.GPUs[i]); err != nil {
				return 0, err
			}
		}
		sum += c.gpu[i]
	}
	return sum, nil
}

func (c *CopyRates) ofCPU(ctx context.Context, key cpuCopy) (rate float64, err error) {
	if c.cpu == nil {
		c.cpu = map[cpuCopy]float64{}
	}
	rate, known := c.cpu[key]
	if known {
		return rate, nil
	}
	if rate, err = cpu.CopyRate(ctx, key.bytes, key.threads); err != nil {
		return 0, err
	}
	c.cpu[key] = rate
	return rate, nil
}

// cpuCopyOf returns the copy on the CPU to compare with p: of a field, by the threads of all ranks.
func cpuCopyOf(p *plan.Plan) cpuCopy {
	threads := runtime.NumCPU()
	if t := p.Config.Device.Threads; t > 0 {
		threads = min(threads, len(p.Ranks)*t)
	}
	return cpuCopy{bytes: p.Mesh.NY * p.Mesh.RowBytes(), threads: threads}
}
