// Package device knows this node's GPUs: how busy, full and warm they are, which of them a rank should take, and which
// cores lie near it. What it reads comes from NVML, the management library of the NVIDIA driver; choosing
// by local rank alone needs none. NVML is compiled in with cgo and the build tag nvml.
package device

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoNVML says that NVML cannot be used on this machine, or not by this program.
var ErrNoNVML = errors.New("NVML is not available")

// Unknown stands for a reading that a GPU does not give.
const Unknown = -1

// GPU is a GPU of this node as NVML saw it at one moment, whether or not CUDA_VISIBLE_DEVICES hides it.
type GPU struct {
	Index       int // NVML's: by PCI bus id
	Name        string
	UUID        string // "GPU-" and hexadecimal digits
	PCIBusID    string // as "00000000:0A:00.0"
	FreeBytes   int64  // of memory; or Unknown, as all that follow
	TotalBytes  int64
	Utilization int // percent of the last second or so in which a kernel ran
	Celsius     int
	Milliwatts  int
}

// Inventory reads GPUs. NVML is one, tests have another.
type Inventory interface {
	// GPUs reads all GPUs of the node.
	GPUs() ([]GPU, error)
	// Cores returns the cores near a GPU: those of its NUMA node.
	Cores(g GPU) (unix.CPUSet, error)
	Close() error
}

// Candidate is a GPU that this process may use, as CUDA lists it.
type Candidate struct {
	Index    int // CUDA's
	Name     string
	UUID     string
	PCIBusID string // as "0000:0a:00.0"
}

// Find returns the GPU that is c: the one with its UUID, else with its PCI bus id, which is all that a slice of a GPU
// (MIG) shares with it.
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

// pciKey makes ids comparable: CUDA writes the domain with four digits, NVML with eight.
func pciKey(id string) string {
	return strings.TrimLeft(strings.ToLower(id), "0")
}
