package plan

import (
	"errors"
	"slices"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/problem"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/setup"
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

// working returns the places of the ranks that will work, and the choices of these alone. Where rank 0 is on another
// host, whose GPUs are not known here, the ranks find out.
func (d *Devices) working(cfg configs.Config, at hosts.Places, prob *problem.Problem) (hosts.Places, error) {
	if len(d.GPUs) == 0 || d.Choices[0] == nil {
		return at, nil
	}
	n := len(at.Ranks)
	near := slices.IndexFunc(at.Ranks, func(r launch.Placement) bool { return r.Host != at.Ranks[0].Host })
	if near < 0 {
		near = n
	}
	working, err := setup.Working(cfg, prob.Mesh(), prob.Operator(), n, near, setup.GPUsOf(d.GPUs))
	if err != nil || working == n {
		return at, err
	}
	at.Ranks, d.Choices = launch.OneHost(at.Ranks[0].Host, working), d.Choices[:working]
	return at, nil
}
