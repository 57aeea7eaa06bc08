// Package device reads the load, free memory and temperature of this node's GPUs, selects the GPU of a rank, and finds
// the cores near it. The readings come from NVML, the management library of the NVIDIA driver; selecting by local rank
// alone needs none. NVML is compiled in with cgo and the build tag nvml.
package device

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoNVML reports that this machine or this program lacks NVML.
var ErrNoNVML = errors.New("NVML is not available")

// Unknown is the value of a reading that a GPU does not support.
const Unknown = -1

// GPU is a GPU of this node as NVML saw it at one moment, even if CUDA_VISIBLE_DEVICES hides it.
type GPU struct {
	Index       int // NVML's, in the order of PCI bus ids
	Name        string
	UUID        string // "GPU-" and hexadecimal digits
	PCIBusID    string // as "00000000:0A:00.0"
	FreeBytes   int64  // of memory; this and all fields below may be Unknown
	TotalBytes  int64
	Utilization int // percent of about the last second in which a kernel ran
	Celsius     int
	Milliwatts  int
}

// Inventory reads the GPUs of a node. NVML is one implementation; tests have another.
type Inventory interface {
	// GPUs reads all GPUs of the node.
	GPUs() ([]GPU, error)
	// Cores returns the cores near a GPU: those of its NUMA node.
	Cores(g GPU) (unix.CPUSet, error)
	// Details reads more of a GPU. Readings that the GPU or the library does not support are Unknown.
	Details(g GPU) (Details, error)
	Close() error
}

// Candidate is a GPU that this process may use, as CUDA lists it.
type Candidate struct {
	Index    int // CUDA's
	Name     string
	UUID     string
	PCIBusID string // as "0000:0a:00.0"
}

// Find returns the reading for candidate c: the GPU with its UUID, else the one with its PCI bus id. A slice of a GPU
// (MIG) shares only the bus id with the whole GPU.
func Find(c Candidate, gpus []GPU) (GPU, error) {
	for _, g := range gpus {
		if strings.EqualFold(g.UUID, c.UUID) {
			return g, nil
		}
	}
	for _, g := range gpus {
		if id := pciKey(g.PCIBusID); id != "" && id == pciKey(c.PCIBusID) {
			return g, nil
		}
	}
	return GPU{}, fmt.Errorf("CUDA's GPU %d (%s, %s) is none of the %d that NVML lists", c.Index, c.UUID, c.PCIBusID,
		len(gpus))
}

// pciKey makes PCI bus ids comparable: CUDA writes the domain with four digits, NVML with eight.
func pciKey(id string) string {
	return strings.TrimLeft(strings.ToLower(id), "0")
}
