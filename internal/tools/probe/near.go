package probe

import (
	"golang.org/x/sys/unix"

	"jacobi/internal/compute/device"
)

// near moves the calling goroutine's thread, which it must be locked to, to the cores near GPU i, so that host memory
// that it touches first lies near the GPU. The function that it returns moves it back. Where the cores are unknown or
// not allowed, near does nothing.
func (m *Machine) near(i int) (back func()) {
	var before unix.CPUSet
	if m.Inventory == nil || unix.SchedGetaffinity(0, &before) != nil {
		return func() {}
	}
	readings, err := m.Inventory.GPUs()
	if err != nil {
		return func() {}
	}
	g, err := device.Find(m.candidate(i), readings)
	if err != nil {
		return func() {}
	}
	cores, err := device.Near(m.Inventory, g)
	if err != nil || unix.SchedSetaffinity(0, &cores) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) } // the cores were allowed before
}

// linkRate returns what the PCIe link of GPU i can carry one way at its highest generation, in bytes a second; 0 if
// that is unknown.
func (m *Machine) linkRate(i int) float64 {
	d, err := m.describe(i, m.readings())
	if err != nil {
		return 0
	}
	return d.PCIe.BytesPerSecond(d.PCIe.MaxGeneration)
}

// readings returns NVML's readings; nil without NVML.
func (m *Machine) readings() []device.GPU {
	if m.Inventory == nil {
		return nil
	}
	readings, err := m.Inventory.GPUs()
	if err != nil {
		return nil
	}
	return readings
}
