//go:build nvml && cgo

package device

import (
	"fmt"
	"math/bits"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"golang.org/x/sys/unix"
)

// nvmlInventory reads GPUs through NVML.
type nvmlInventory struct{ lib nvml.Interface }

// OpenNVML loads and initialises NVML. The error is ErrNoNVML if there is no library or no driver for it.
func OpenNVML() (Inventory, error) { return openNVML(nvml.New()) }

func openNVML(lib nvml.Interface) (Inventory, error) {
	switch r := lib.Init(); r {
	case nvml.SUCCESS:
		return &nvmlInventory{lib}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("%w: the loader finds no libnvidia-ml.so.1, which comes with the NVIDIA driver",
			ErrNoNVML)
	default:
		return nil, fmt.Errorf("%w: start NVML: %w", ErrNoNVML, r)
	}
}

func (n *nvmlInventory) Close() error {
	if r := n.lib.Shutdown(); r != nvml.SUCCESS {
		return fmt.Errorf("shut NVML down: %w", r)
	}
	return nil
}

func (n *nvmlInventory) GPUs() ([]GPU, error) {
	count, r := n.lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML: count GPUs: %w", r)
	}
	gpus := make([]GPU, count)
	for i := range gpus {
		d, r := n.lib.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			return nil, fmt.Errorf("NVML: GPU %d: %w", i, r)
		}
		g, err := read(d)
		if err != nil {
			return nil, fmt.Errorf("NVML: GPU %d: %w", i, err)
		}
		g.Index = i
		gpus[i] = g
	}
	return gpus, nil
}

// read reads one GPU. It fails without the GPU's identity; other readings may be Unknown.
func read(d nvml.Device) (GPU, error) {
	g := GPU{FreeBytes: Unknown, TotalBytes: Unknown, Utilization: Unknown, Celsius: Unknown, Milliwatts: Unknown}
	var r nvml.Return
	if g.UUID, r = d.GetUUID(); r != nvml.SUCCESS {
		return g, fmt.Errorf("UUID: %w", r)
	}
	pci, r := d.GetPciInfo()
	if r != nvml.SUCCESS {
		return g, fmt.Errorf("PCI bus id: %w", r)
	}
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		g.PCIBusID += string(rune(c))
	}
	if g.Name, r = d.GetName(); r != nvml.SUCCESS {
		return g, fmt.Errorf("name: %w", r)
	}
	if m, r := d.GetMemoryInfo(); r == nvml.SUCCESS {
		g.FreeBytes, g.TotalBytes = int64(m.Free), int64(m.Total)
	}
	if u, r := d.GetUtilizationRates(); r == nvml.SUCCESS {
		g.Utilization = int(u.Gpu)
	}
	// Not its successor GetTemperatureV: older drivers do not have it, and calling a function that does not exist ends
	// the process.
	if c, r := d.GetTemperature(nvml.TEMPERATURE_GPU); r == nvml.SUCCESS {
		g.Celsius = int(c)
	}
	if p, r := d.GetPowerUsage(); r == nvml.SUCCESS {
		g.Milliwatts = int(p)
	}
	return g, nil
}

func (n *nvmlInventory) Cores(g GPU) (cores unix.CPUSet, err error) {
	d, r := n.lib.DeviceGetHandleByUUID(g.UUID)
	if r != nvml.SUCCESS {
		return cores, fmt.Errorf("NVML: GPU %s: %w", g.UUID, r)
	}
	words, r := d.GetCpuAffinity(len(cores) * bits.UintSize)
	if r != nvml.SUCCESS {
		return cores, fmt.Errorf("NVML: cores near GPU %d: %w", g.Index, r)
	}
	for i := range len(words) * bits.UintSize {
		if words[i/bits.UintSize]>>(i%bits.UintSize)&1 != 0 {
			cores.Set(i)
		}
	}
	return cores, nil
}
