package probe

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"jacobi/cuda/driver"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/compute/device"
)

// Machine is what the parts measure: the devices of one node, and the way from it to the others. One rank of each node
// has one.
type Machine struct {
	Host   string
	Node   int            // index of this node in Nodes
	Nodes  []string       // hosts of all nodes of the probe
	DType  string         // grid.dtype: float32 or float64
	Driver *driver.Driver // nil without GPUs
	GPUs   []driver.Device
	NoGPU  error // why there are none

	Inventory device.Inventory // nil without NVML
	NoNVML    error            // why there is none

	// Dial opens a connection to the server of a run; nil for a run of one rank without a server.
	Dial func(ctx context.Context) (pubsub.Conn, func(), error)
	// Echo returns the subject at which the echo of a node answers.
	Echo func(node int) string
}

// OpenGPUs fills in the GPUs that this process sees, unless backend (device.backend) is cpu, and NVML.
func (m *Machine) OpenGPUs(backend string) {
	if backend == "cpu" {
		m.NoGPU = errors.New(`device.backend "cpu"`)
		return
	}
	m.Driver, m.NoGPU = driver.Open()
	if m.NoGPU == nil {
		m.GPUs, m.NoGPU = m.Driver.Devices()
	}
	if m.NoGPU == nil && len(m.GPUs) == 0 {
		m.NoGPU = driver.ErrNoDevice
	}
	m.Inventory, m.NoNVML = device.OpenNVML()
}

// Close shuts NVML down.
func (m *Machine) Close() error {
	if m.Inventory == nil {
		return nil
	}
	return m.Inventory.Close()
}

// near moves the calling goroutine's thread, which it must be locked to, to the cores near GPU i, so that host memory
// that it touches first lies near the GPU. The function that it returns moves it back. Where the cores are unknown or
// not allowed, near does nothing.
func (m *Machine) near(i int) (back func()) {
	var before unix.CPUSet
	g, err := m.find(i)
	if err != nil || unix.SchedGetaffinity(0, &before) != nil {
		return func() {}
	}
	cores, err := device.Near(m.Inventory, g)
	if err != nil || unix.SchedSetaffinity(0, &cores) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) } // the cores were allowed before
}
