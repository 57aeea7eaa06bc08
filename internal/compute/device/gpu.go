// Package device reads the load, free memory and temperature of this node's GPUs, selects the GPU of a rank, and finds
// the cores near it. The readings come from NVML, the management library of the NVIDIA driver; selecting by local rank
// alone needs none. NVML is compiled in with cgo and the build tag nvml.
package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
	// Health reads the GPU with this UUID.
	Health(uuid string) (Health, error)
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

// Health are the readings of a GPU that tell whether it is sound. Each may be Unknown.
type Health struct {
	Celsius     int
	Milliwatts  int
	SMClock     int // MHz
	MemoryClock int // MHz
	UsedBytes   int // of memory, by all processes and the driver
	Corrected   int // ECC errors since the driver was loaded, in all memories
	Uncorrected int
	// Throttled are the reasons why the clocks are lower than they could be under load; empty if there are none. An
	// idle GPU and clocks that an administrator has set are no reasons.
	Throttled []string
}

// OpenHealth opens the inventory of a node that can read the health of the GPU with this UUID. Not every GPU can be
// read: NVML does not know a slice of one.
func OpenHealth(uuid string) (Inventory, error) {
	nvml, err := OpenNVML()
	if err != nil {
		return nil, err
	}
	if _, err := nvml.Health(uuid); err != nil {
		_ = nvml.Close() // err says more
		return nil, err
	}
	return nvml, nil
}

// Reading is a reading of a GPU. In JSON, Unknown is null.
type Reading int64

// MarshalJSON implements json.Marshaler.
func (r Reading) MarshalJSON() ([]byte, error) {
	if r == Unknown {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(r), 10), nil
}

// Details are the readings of a GPU for those who accept or watch a machine. GPU has those that device.select needs.
type Details struct {
	UsedBytes  Reading `json:"memory_used_bytes"` // of memory, by all processes and the driver
	PowerLimit Reading `json:"power_limit_milliwatts"`
	SMClock    Reading `json:"sm_clock_mhz"`
	MaxSMClock Reading `json:"sm_clock_max_mhz"`
	MemClock   Reading `json:"memory_clock_mhz"`

	Corrected    Reading `json:"ecc_corrected"`   // errors of memory since the driver was loaded
	Uncorrected  Reading `json:"ecc_uncorrected"` // likewise
	RemappedRows Reading `json:"remapped_rows"`   // rows of memory that spare rows replace, for errors of either kind
	RemapPending bool    `json:"remap_pending"`   // a row is to be replaced at the next reset
	RemapFailed  bool    `json:"remap_failed"`    // no spare row was left

	Throttled []string  `json:"clock_limits"`  // why the clocks are lower than they might be
	Processes []Process `json:"processes"`     // that compute on the GPU
	NVLinks   []bool    `json:"nvlink_active"` // by link; empty without NVLink
	PCIe      PCIe      `json:"pcie"`
	NUMANode  Reading   `json:"numa_node"`
	Cores     string    `json:"near_cores"` // in the format of FormatCores; "" if unknown
}

// Process is a process that computes on a GPU.
type Process struct {
	PID       int     `json:"pid"` // in the PID namespace of the driver
	UsedBytes Reading `json:"memory_used_bytes"`
}

// PCIe describes the link of a GPU. An idle GPU may lower the generation, never the width.
type PCIe struct {
	Generation    Reading `json:"generation"`
	MaxGeneration Reading `json:"generation_max"` // that GPU and slot can do together
	Width         Reading `json:"width"`          // lanes
	MaxWidth      Reading `json:"width_max"`
}

// BytesPerSecond returns what the link can carry in one direction at the generation g, in payload and packet headers;
// 0 if it is unknown. Lanes of generations 1 and 2 carry 8 bits in 10, those of 3 to 5 carry 128 in 130 (PCI Express
// Base Specification 5.0, chapter 4), and those of 6 carry 242 bytes of 256.
func (p PCIe) BytesPerSecond(g Reading) float64 {
	lane := map[Reading]float64{1: 2.5e9 * 0.8, 2: 5e9 * 0.8, 3: 8e9 * 128 / 130, 4: 16e9 * 128 / 130,
		5: 32e9 * 128 / 130, 6: 64e9 * 242 / 256}
	if p.Width <= 0 {
		return 0
	}
	return lane[g] / 8 * float64(p.Width)
}

// unknownDetails returns details without any reading.
func unknownDetails() Details {
	return Details{UsedBytes: Unknown, PowerLimit: Unknown, SMClock: Unknown, MaxSMClock: Unknown, MemClock: Unknown,
		Corrected: Unknown, Uncorrected: Unknown, RemappedRows: Unknown, Throttled: []string{}, Processes: []Process{},
		NVLinks: []bool{}, NUMANode: Unknown,
		PCIe: PCIe{Generation: Unknown, MaxGeneration: Unknown, Width: Unknown, MaxWidth: Unknown}}
}

// sysfs is where Linux describes PCI devices.
const sysfs = "/sys/bus/pci/devices"

// SystemDetails returns the details that Linux knows of the GPU with the given PCI bus id: link, NUMA node and cores.
// The others are Unknown.
func SystemDetails(pciBusID string) Details { return systemDetails(sysfs, pciBusID) }

func systemDetails(root, pciBusID string) Details {
	d := unknownDetails()
	id := strings.ToLower(pciBusID)
	if domain, rest, ok := strings.Cut(id, ":"); ok && len(domain) == 8 { // as NVML writes it
		id = domain[4:] + ":" + rest
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, id, name))
		if err != nil || len(text) > 4096 {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	number := func(name string) Reading {
		n, err := strconv.Atoi(read(name))
		if err != nil || n < 0 {
			return Unknown
		}
		return Reading(n)
	}
	d.PCIe.Width, d.PCIe.MaxWidth = number("current_link_width"), number("max_link_width")
	d.PCIe.Generation = generation(read("current_link_speed"))
	d.PCIe.MaxGeneration = generation(read("max_link_speed"))
	d.NUMANode, d.Cores = number("numa_node"), read("local_cpulist")
	if d.PCIe.Width == 0 || d.PCIe.Width > 32 { // a virtual machine shows no link, or 63 lanes of it
		d.PCIe.Width, d.PCIe.MaxWidth = Unknown, Unknown
	}
	return d
}

// generation returns the generation of PCI Express with a speed such as "32.0 GT/s PCIe".
func generation(speed string) Reading {
	rate, _, _ := strings.Cut(speed, " ")
	for i, r := range []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"} {
		if rate == r {
			return Reading(i + 1)
		}
	}
	return Unknown
}
