package plan

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/dustin/go-humanize"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/problem"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// rankMemory returns, by rank, the memory that its report will state: fields with halos, the source and the fixed
// points of the operator, scratch and, on the CPU, a copy of the stripe for checkpoints.
func rankMemory(cfg configs.Config, at hosts.Places, s *setup.Setup, onGPUs bool) ([]int64, error) {
	name, on := cfg.Device.Kernel, setup.DeviceOf(onGPUs)
	if name == "auto" || len(at.Here) == 0 { // other hosts may support kernels that this one does not
		name = ""
	}
	if !onGPUs {
		if _, err := kernel.Find(name, s.Mesh.DType); err != nil {
			return nil, fmt.Errorf("device.kernel %q: %w", name, err)
		}
	}
	type shape struct{ held, threads int } // determines the need of a rank
	known := map[shape]int64{}
	need := make([]int64, s.Ranks)
	for r := range need {
		l, threads := s.Layout(r), cfg.Device.Threads
		if threads == 0 { // other hosts are taken to have as many cores as this machine
			threads = cpu.ThreadsOn(float64(runtime.NumCPU()) / float64(at.Placements[r].LocalSize))
		}
		like := shape{l.Held().Rows(), threads}
		if _, ok := known[like]; !ok {
			var err error
			if known[like], err = s.Bytes(cfg, r, on, cpu.Options{Threads: threads, Kernel: name}); err != nil {
				return nil, err
			}
		}
		need[r] = known[like]
		if cfg.Checkpoint.On() && !onGPUs {
			need[r] += savedBytes(s, l)
		}
	}
	return need, nil
}

// savedBytes returns the bytes that a rank saves in a checkpoint.
func savedBytes(s *setup.Setup, l solver.Layout) int64 {
	bytes := int64(l.Stripe.Rows()) * int64(l.Mesh.RowBytes())
	if s.MayAccelerate() {
		return 2 * bytes
	}
	return bytes
}

// BytesHere returns the memory that the ranks on this machine need.
func (p *Plan) BytesHere() int64 {
	return p.sumHere(func(rank int) int64 { return p.Memory[rank] })
}

// sumHere adds up of over the ranks on this machine.
func (p *Plan) sumHere(of func(rank int) int64) (sum int64) {
	for r, at := range p.Placements {
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

// Devices says on what the ranks sweep.
type Devices struct {
	OnGPUs  bool             // the ranks sweep on GPUs, which may all be on other hosts
	GPUs    []driver.Device  // of this machine; empty if the ranks sweep on the CPU
	WhyCPU  error            // why the CPU sweeps; nil if GPUs do
	Choices []*device.Choice // GPUs by rank, nil for ranks on other hosts; empty if the ranks sweep on the CPU
}

// chooseDevices opens the GPUs of this machine and chooses one for each rank here, as the ranks will. If device.select
// orders GPUs by readings, it takes readings of its own, so the ranks may choose otherwise. The devices that it returns
// with an error are those that it has found.
func chooseDevices(c configs.Device, at hosts.Places) (Devices, error) {
	none := Devices{OnGPUs: c.Backend == "cuda"}
	if len(at.Here) == 0 {
		return none, nil
	}
	node, err := device.Open(device.Options{Backend: c.Backend, Select: device.Policy(c.Select)})
	if err != nil {
		return none, err
	}
	if node.WhyCPU != nil {
		none.WhyCPU = node.WhyCPU
		return none, node.Close()
	}
	found := Devices{OnGPUs: true, GPUs: node.Devices, Choices: make([]*device.Choice, len(at.Placements))}
	if err := node.Read(); err != nil {
		return found, errors.Join(err, node.Close())
	}
	for r, rank := range at.Placements {
		if !at.Here[rank.Host] {
			continue
		}
		choice, err := node.Select(rank.LocalRank, node.Readings)
		if err != nil {
			return found, errors.Join(err, node.Close())
		}
		found.Choices[r] = &choice
	}
	return found, node.Close()
}

// working returns the places of the ranks that will work, and the choices of these alone. Where rank 0 is on another
// host, whose GPUs are not known here, the ranks find out.
func (d *Devices) working(cfg configs.Config, at hosts.Places, prob *problem.Problem) (hosts.Places, error) {
	if len(d.GPUs) == 0 || d.Choices[0] == nil {
		return at, nil
	}
	n := len(at.Placements)
	near := slices.IndexFunc(at.Placements, func(r launch.Placement) bool { return r.Host != at.Placements[0].Host })
	if near < 0 {
		near = n
	}
	working, err := setup.Working(cfg, prob.Mesh(), prob.Operator(), n, near, setup.GPUsOf(d.GPUs))
	if err != nil || working == n {
		return at, err
	}
	at.Placements, d.Choices = launch.OneHost(at.Placements[0].Host, working), d.Choices[:working]
	return at, nil
}
