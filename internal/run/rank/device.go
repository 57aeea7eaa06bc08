package rank

import (
	"context"
	"errors"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/device"
	"jacobi/solver"
)

// openDevices opens the GPUs of this node as device.backend and device.select say.
func (s *session) openDevices(context.Context) error {
	if s.spare() {
		return nil
	}
	gpus, err := s.openGPUs()
	if err != nil {
		return err
	}
	s.open.add(gpus.Close)
	s.gpus = gpus
	return nil
}

func (o Options) openGPUs() (*device.Node, error) {
	c := o.Config.Device
	gpus, err := device.Open(device.Options{Backend: c.Backend, Select: device.Policy(c.Select), Pin: c.Pin})
	if err != nil {
		return nil, err
	}
	why := gpus.WhyCPU
	if why != nil && c.Backend == "auto" && o.Origin.LocalRank == 0 && !errors.Is(why, driver.ErrNoDriver) &&
		!errors.Is(why, driver.ErrNoDevice) {
		o.Log.Sugar().Warnf("no GPU can be used, the CPU sweeps: %v", why)
	}
	return gpus, nil
}

// sweepsOnGPU reports whether a GPU sweeps this rank's stripe.
func (d *devices) sweepsOnGPU() bool { return d.gpus.WhyCPU == nil }

// deviceName returns the kind of this rank's device, as the roster names it.
func (d *devices) deviceName() string {
	if d.sweepsOnGPU() {
		return "cuda"
	}
	return "cpu"
}

// preferredDepth returns the halo depth that suits this rank's device.
func (r *run) preferredDepth(m solver.Mesh) int {
	minRows := solver.MinRows(m.Interior(), r.working)
	if r.sweepsOnGPU() {
		return cuda.PreferredDepth(m, r.problem.Operator(), minRows, r.Config.Solver.NormEvery)
	}
	return cpu.PreferredDepth(m, minRows)
}

// maxPassSweeps returns the largest number of sweeps that the device does in a pass.
func (d *devices) maxPassSweeps(mesh solver.Mesh) int {
	if d.sweepsOnGPU() {
		return cuda.MaxSweeps(mesh)
	}
	return cpu.MaxSweeps(mesh)
}
