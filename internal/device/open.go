package device

import (
	"errors"
	"fmt"

	"jacobi/cuda/driver"
)

// Options are the keys device.backend, device.select and device.pin.
type Options struct {
	Backend string // auto | cpu | cuda
	Select  Policy
	Pin     bool
}

// Node is the GPUs of this node, as this process may use them.
type Node struct {
	Driver  *driver.Driver
	Devices []driver.Device // without those that CUDA_VISIBLE_DEVICES hides, in its order; none where the CPU sweeps
	WhyCPU  error           // why the CPU sweeps; nil where GPUs do

	Readings []GPU // hidden GPUs too, when Open was called; nil where Options need none
	NoNVML   error // why Options got no readings

	policy Policy
	nvml   Inventory
}

// Open opens the GPUs for o: the driver's list, and NVML's readings where o needs them. It is an error if o.Backend is
// cuda and there are none, and if o.Select needs readings and there are none. Close it after use.
func Open(o Options) (*Node, error) { return open(o, openCUDA, OpenNVML) }

func open(o Options, cuda func() (*driver.Driver, []driver.Device, error), nvml func() (Inventory, error)) (*Node,
	error) {
	n := &Node{policy: o.Select}
	if o.Backend == "cpu" {
		n.WhyCPU = errors.New(`device.backend "cpu"`)
		return n, nil
	}
	if n.Driver, n.Devices, n.WhyCPU = cuda(); n.WhyCPU != nil {
		if o.Backend == "cuda" {
			return nil, fmt.Errorf("device.backend %q: %w; allowed here are auto and cpu", o.Backend, n.WhyCPU)
		}
		return n, nil
	}
	if o.Select == RoundRobin && !o.Pin {
		return n, nil
	}
	if n.NoNVML = n.read(nvml); n.NoNVML != nil && o.Select != RoundRobin {
		return nil, errors.Join(fmt.Errorf("device.select %q: %w; allowed here is %s", o.Select, n.NoNVML, RoundRobin),
			n.Close())
	}
	return n, nil
}

// openCUDA returns the driver and its GPUs, of which there is at least one.
func openCUDA() (*driver.Driver, []driver.Device, error) {
	d, err := driver.Open()
	if err != nil {
		return nil, nil, err
	}
	devices, err := d.Devices()
	if err == nil && len(devices) == 0 {
		err = driver.ErrNoDevice
	}
	return d, devices, err
}

func (n *Node) read(open func() (Inventory, error)) (err error) {
	if n.nvml, err = open(); err == nil {
		n.Readings, err = n.nvml.GPUs()
	}
	return err
}

// Select chooses the GPU of the rank with the given local rank. All ranks of a node give the same readings, those that
// one of them took.
func (n *Node) Select(localRank int, readings []GPU) (Choice, error) {
	candidates := make([]Candidate, len(n.Devices))
	for i, d := range n.Devices {
		candidates[i] = Candidate{Index: d.Index, Name: d.Name, UUID: d.UUID, PCIBusID: d.PCIBusID}
	}
	return Select(n.policy, localRank, candidates, readings)
}

// ErrFewCores says that the ranks of the node would get in each other's way on the cores near a GPU.
var ErrFewCores = errors.New("too few cores are near the GPU")

// Pin keeps this process on those of its cores that are near the GPU, and returns them as FormatCores writes them. It
// stays where it is without NVML, where no allowed core is near, and where fewer are than the node has ranks, all of
// which may have come to these cores: ErrNoNVML, ErrNoCores, ErrFewCores.
func (n *Node) Pin(c Candidate, ranks int) (string, error) {
	if n.NoNVML != nil {
		return "", n.NoNVML
	}
	g, err := Find(c, n.Readings)
	if err != nil {
		return "", err
	}
	cores, err := Near(n.nvml, g)
	if err != nil {
		return "", err
	}
	if n := cores.Count(); n < ranks {
		return "", fmt.Errorf("%w: %s (%s) for %s", ErrFewCores, plural(n, "core"), FormatCores(cores),
			plural(ranks, "rank"))
	}
	return FormatCores(cores), Pin(cores)
}

// Close gives NVML back. Driver and Devices stay.
func (n *Node) Close() error {
	if n.nvml == nil {
		return nil
	}
	err := n.nvml.Close()
	n.nvml = nil
	return err
}
