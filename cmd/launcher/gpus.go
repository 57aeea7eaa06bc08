package main

import (
	"fmt"

	"jacobi/internal/device"
)

// chooseGPUs opens the GPUs of this machine and chooses one for each rank here, as the ranks will. If device.select
// orders GPUs by readings, it takes readings of its own, so the ranks may choose otherwise.
func (p *plan) chooseGPUs() error {
	if len(p.here) == 0 {
		return nil
	}
	node, err := device.Open(device.Options{Backend: p.cfg.Device.Backend, Select: device.Policy(p.cfg.Device.Select)})
	if err != nil {
		return err
	}
	p.whyCPU, p.gpus = node.WhyCPU, node.Devices
	if p.whyCPU != nil {
		return nil
	}
	p.choices = make([]*device.Choice, len(p.ranks))
	for r, at := range p.ranks {
		if !p.here[at.Host] {
			continue
		}
		c, err := node.Select(at.LocalRank, node.Readings)
		if err != nil {
			return err
		}
		p.choices[r] = &c
	}
	return node.Close()
}

// gpu returns the GPU columns of rank r in the table of a dry run.
func (p *plan) gpu(r int) string {
	c := p.choices[r]
	if c == nil {
		return "\t\t\t\tchosen on its host"
	}
	return fmt.Sprintf("\t%d\t%s\t%s\t%s", c.Index, c.Name, c.UUID, c.Why)
}

// checkDeviceMemory compares the needs of the ranks on each GPU with the GPU's total memory. Whether enough of it is
// free turns out when the ranks start.
func (p *plan) checkDeviceMemory() error {
	need := make([]int64, len(p.gpus))
	for r, c := range p.choices {
		if c != nil {
			need[c.Index] += p.memory[r]
		}
	}
	for i, gpu := range p.gpus {
		if need[i] > gpu.TotalBytes {
			return fmt.Errorf("grid.nx %d, grid.ny %d: memory of GPU %d (%s): %s are needed and there are %s",
				p.mesh.NX, p.mesh.NY, i, gpu.Name,
				bytesText(need[i]), bytesText(gpu.TotalBytes))
		}
	}
	return nil
}
