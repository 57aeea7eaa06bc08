package rank

import (
	"errors"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/device"
	"jacobi/solver"
)

// openDevices opens the GPUs of this node as device.backend and device.select say. An idle rank opens none.
func (r *run) openDevices() error {
	if r.idle() {
		return nil
	}
	gpus, err := r.openGPUs()
	if err != nil {
		return err
	}
	r.open.add(gpus.Close)
	r.gpus = gpus
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
func (m *membership) sweepsOnGPU() bool { return m.gpus.WhyCPU == nil }

// deviceName returns the kind of this rank's device, as the roster names it.
func (m *membership) deviceName() string {
	if m.sweepsOnGPU() {
		return "cuda"
	}
	return "cpu"
}

// preferredDepth returns the halo depth that suits this rank's device.
func (r *run) preferredDepth(m solver.Mesh) int {
	minRows := solver.MinRows(m.Interior(), r.working)
	if r.sweepsOnGPU() {
		return cuda.PreferredDepth(m, minRows, r.Config.Solver.NormEvery)
	}
	return cpu.PreferredDepth(m, minRows)
}

// maxPassSweeps returns the largest number of sweeps that the device does in a pass.
func (m *membership) maxPassSweeps(mesh solver.Mesh) int {
	if m.sweepsOnGPU() {
		return cuda.MaxSweeps(mesh)
	}
	return cpu.MaxSweeps(mesh)
}
