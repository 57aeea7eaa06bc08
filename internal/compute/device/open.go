package device

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"jacobi/cuda/driver"
)

// Options holds the keys device.backend, device.select and device.pin.
type Options struct {
	Backend string // auto | cpu | cuda
	Select  Policy
	Pin     bool
}

// Node describes the GPUs of this node that this process may use.
type Node struct {
	Driver  *driver.Driver
	Devices []driver.Device // those that CUDA_VISIBLE_DEVICES leaves visible, in its order; none if the CPU sweeps
	WhyCPU  error           // why the CPU sweeps; nil where GPUs do

	Readings []GPU // taken by Open, of hidden GPUs too; nil where Options need none
	NoNVML   error // why there are no readings although Options need them

	policy Policy
	nvml   Inventory
}

// Open lists the GPUs for o through the CUDA driver, and reads them through NVML where o needs readings. It is an error
// if o.Backend is cuda and there is no GPU, or if o.Select needs readings and there are none. Close the Node after use.
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

// openCUDA returns the driver and at least one GPU, or an error.
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

// Select chooses the GPU of the rank with the given local rank. All ranks of a node must pass the same readings, taken
// by one of them.
func (n *Node) Select(localRank int, readings []GPU) (Choice, error) {
	candidates := make([]Candidate, len(n.Devices))
	for i, d := range n.Devices {
		candidates[i] = Candidate{Index: d.Index, Name: d.Name, UUID: d.UUID, PCIBusID: d.PCIBusID}
	}
	return Select(n.policy, localRank, candidates, readings)
}

// ErrFewCores reports that the cores near a GPU are too few for the ranks of the node.
var ErrFewCores = errors.New("too few cores are near the GPU")

// Pin restricts this process to those of its cores that are near the GPU, and returns them in the format of
// FormatCores. It leaves the process where it is without NVML (ErrNoNVML), if no allowed core is near (ErrNoCores), and
// if fewer cores are near than the node has ranks, since all ranks may be pinned to these cores (ErrFewCores).
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
		return "", fmt.Errorf("%w: %s (%s) for %s", ErrFewCores, english.Plural(n, "core", ""), FormatCores(cores),
			english.Plural(ranks, "rank", ""))
	}
	return FormatCores(cores), Pin(cores)
}

// Close shuts NVML down. Driver and Devices stay usable.
func (n *Node) Close() error {
	if n.nvml == nil {
		return nil
	}
	err := n.nvml.Close()
	n.nvml = nil
	return err
}
