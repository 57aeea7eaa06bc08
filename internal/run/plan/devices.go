package plan

import (
	"errors"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/device"
	"jacobi/internal/run/hosts"
)

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
	found := Devices{OnGPUs: true, GPUs: node.Devices, Choices: make([]*device.Choice, len(at.Ranks))}
	for r, rank := range at.Ranks {
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
