package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"golang.org/x/sys/unix"

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

	// Readings are taken by Read, of hidden GPUs too; nil where Options need none. Between Foresee and Pin nobody may
	// look at them.
	Readings []GPU
	NoNVML   error // why there are no readings although Options need them

	policy Policy
	pin    bool
	nvml   Inventory

	foreseen Candidate                   // of Foresee
	near     func() (unix.CPUSet, error) // the cores near it; nil before Foresee
}

// Open lists the GPUs for o through the CUDA driver. It is an error if o.Backend is cuda and there is no GPU. Close the
// Node after use.
func Open(o Options) (*Node, error) { return open(o, openCUDA) }

func open(o Options, cuda func() (*driver.Driver, []driver.Device, error)) (*Node, error) {
	n := &Node{policy: o.Select, pin: o.Pin}
	if o.Backend == "cpu" {
		n.WhyCPU = errors.New(`device.backend "cpu"`)
		return n, nil
	}
	if n.Driver, n.Devices, n.WhyCPU = cuda(); n.WhyCPU != nil {
		if o.Backend == "cuda" {
			return nil, fmt.Errorf("device.backend %q: %w; allowed here are auto and cpu", o.Backend, n.WhyCPU)
		}
	}
	return n, nil
}

// Read reads the GPUs through NVML where Options need readings. It is an error if Options.Select needs them and there
// are none.
func (n *Node) Read() error { return n.read(OpenNVML) }

func (n *Node) read(open func() (Inventory, error)) error {
	if n.WhyCPU != nil || n.policy == RoundRobin && !n.pin {
		return nil
	}
	if n.nvml, n.NoNVML = open(); n.NoNVML == nil {
		n.Readings, n.NoNVML = n.nvml.GPUs()
	}
	if n.NoNVML != nil && n.policy != RoundRobin {
		return fmt.Errorf("device.select %q: %w; allowed here is %s", n.policy, n.NoNVML, RoundRobin)
	}
	return nil
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
	var cores unix.CPUSet
	var err error
	if n.near != nil {
		cores, err = n.near()
	}
	if n.near == nil || n.foreseen != c {
		cores, err = n.coresNear(c)
	}
	if err != nil {
		return "", err
	}
	if n := cores.Count(); n < ranks {
		return "", fmt.Errorf("%w: %s (%s) for %s", ErrFewCores, english.Plural(n, "core", ""), FormatCores(cores),
			english.Plural(ranks, "rank", ""))
	}
	return FormatCores(cores), Pin(cores)
}

// Foresee begins to read what Pin of c will need through NVML, in the place of Read, while the caller does other work.
// Options.Select must be RoundRobin. Pin and Close wait for it.
func (n *Node) Foresee(c Candidate) { n.foresee(c, OpenNVML) }

func (n *Node) foresee(c Candidate, open func() (Inventory, error)) {
	if !n.pin {
		return
	}
	n.foreseen, n.near = c, sync.OnceValues(func() (unix.CPUSet, error) {
		if err := n.read(open); err != nil {
			return unix.CPUSet{}, err
		}
		return n.coresNear(c)
	})
	go func() { _, _ = n.near() }() // Pin has the error
}

// coresNear returns the allowed cores near a GPU.
func (n *Node) coresNear(c Candidate) (unix.CPUSet, error) {
	if n.NoNVML != nil {
		return unix.CPUSet{}, n.NoNVML
	}
	g, err := Find(c, n.Readings)
	if err != nil {
		return unix.CPUSet{}, err
	}
	return Near(n.nvml, g)
}

// Close shuts NVML down. Driver and Devices stay usable.
func (n *Node) Close() error {
	if n.near != nil {
		_, _ = n.near()
	}
	if n.nvml == nil {
		return nil
	}
	err := n.nvml.Close()
	n.nvml = nil
	return err
}

// Policy is the rule by which a rank selects its GPU.
type Policy string

// The policies, as device.select names them. All except RoundRobin need readings and sort the candidates by them. The
// rank with local rank r then takes the one at position r % n, so that the ranks of a node spread over its GPUs. Ranks
// take different GPUs only if they sort by the same readings.
const (
	RoundRobin     Policy = "round-robin" // CUDA's order
	LeastUtilized  Policy = "least-utilized"
	MostFreeMemory Policy = "most-free-memory"
	Coolest        Policy = "coolest"
	LeastPower     Policy = "least-power"
)

// ErrNoCandidate reports that there is no GPU to select from.
var ErrNoCandidate = errors.New("no GPU to choose from")

// Choice is the GPU that a rank takes.
type Choice struct {
	Candidate
	Why string // for the user
}

// Select chooses the GPU of the rank with the given local rank (its number on its node) among the candidates. gpus are
// the readings of the node; RoundRobin ignores them. GPUs with equal readings keep CUDA's order.
func Select(p Policy, localRank int, candidates []Candidate, gpus []GPU) (Choice, error) {
	n := len(candidates)
	if n == 0 {
		return Choice{}, ErrNoCandidate
	}
	place := localRank % n
	if p == RoundRobin {
		return Choice{candidates[place], fmt.Sprintf("%s: local rank %d, %s", p, localRank,
			english.Plural(n, "GPU", ""))}, nil
	}
	order := slices.Clone(candidates)
	loads := make(map[int]load, n) // by CUDA's index
	for _, c := range candidates {
		g, err := Find(c, gpus)
		if err != nil {
			return Choice{}, fmt.Errorf("device.select %q: %w", p, err)
		}
		if loads[c.Index], err = p.load(g); err != nil {
			return Choice{}, err
		}
	}
	slices.SortStableFunc(order, func(a, b Candidate) int {
		return cmp.Compare(loads[a.Index].amount,
			loads[b.Index].amount)
	})
	c := order[place]
	return Choice{c, fmt.Sprintf("%s: local rank %d, number %d of %d by %s", p, localRank, place+1, n,
		loads[c.Index].text)}, nil
}

// load is the reading that a policy minimises, as a number to sort by and as text.
type load struct {
	amount int64
	text   string
}

func (p Policy) load(g GPU) (load, error) {
	var reading int64
	var l load
	switch p {
	case LeastUtilized:
		reading = int64(g.Utilization)
		l = load{reading, fmt.Sprintf("utilization (%d%%)", reading)}
	case MostFreeMemory:
		reading = g.FreeBytes
		l = load{-reading, fmt.Sprintf("free memory (%s)", humanize.IBytes(uint64(max(0, reading))))}
	case Coolest:
		reading = int64(g.Celsius)
		l = load{reading, fmt.Sprintf("temperature (%d C)", reading)}
	case LeastPower:
		reading = int64(g.Milliwatts)
		l = load{reading, fmt.Sprintf("power (%.1f W)", float64(reading)/1000)}
	default:
		return l, fmt.Errorf("device.select %q is unknown", p)
	}
	if reading == Unknown {
		return l, fmt.Errorf("device.select %q: NVML has no such reading of GPU %d (%s); allowed here is %s", p,
			g.Index, g.Name, RoundRobin)
	}
	return l, nil
}
