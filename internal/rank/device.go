package rank

import (
	"errors"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/cpu"
	"jacobi/internal/device"
	"jacobi/solver"
)

// openGPUs opens the GPUs of this node as device.backend and device.select say.
func (s *started) openGPUs() (*device.Node, error) {
	c := s.Config.Device
	gpus, err := device.Open(device.Options{Backend: c.Backend, Select: device.Policy(c.Select), Pin: c.Pin})
	if err != nil {
		return nil, err
	}
	why := gpus.WhyCPU
	if why != nil && c.Backend == "auto" && s.Origin.LocalRank == 0 && !errors.Is(why, driver.ErrNoDriver) &&
		!errors.Is(why, driver.ErrNoDevice) {
		s.Log.Sugar().Warnf("no GPU can be used, the CPU sweeps: %v", why)
	}
	return gpus, nil
}

// sweepsOnGPU reports whether a GPU sweeps this rank's stripe.
func (p *prepared) sweepsOnGPU() bool { return p.gpus.WhyCPU == nil }

// deviceName returns the kind of this rank's device, as the roster names it.
func (p *prepared) deviceName() string {
	if p.sweepsOnGPU() {
		return "cuda"
	}
	return "cpu"
}

// preferredDepth returns the halo depth that suits this rank's device.
func (p *prepared) preferredDepth(m solver.Mesh) int {
	minRows := solver.MinRows(m.Interior(), p.Origin.Size)
	if p.sweepsOnGPU() {
		return cuda.PreferredDepth(m, minRows, p.Config.Solver.NormEvery)
	}
	return cpu.PreferredDepth(m, minRows)
}

// maxPassSweeps returns the largest number of sweeps that the device does in a pass.
func (p *prepared) maxPassSweeps(m solver.Mesh) int {
	if p.sweepsOnGPU() {
		return cuda.MaxSweeps(m)
	}
	return cpu.MaxSweeps(m)
}
