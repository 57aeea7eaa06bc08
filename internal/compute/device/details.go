package device

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
