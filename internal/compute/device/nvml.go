//go:build nvml && cgo

package device

import (
	"fmt"
	"math"
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

// Details implements Inventory. It calls no function that the library lacks, since that would end the process.
func (n *nvmlInventory) Details(g GPU) (Details, error) {
	v, r := n.lib.DeviceGetHandleByUUID(g.UUID)
	if r != nvml.SUCCESS {
		return unknownDetails(), fmt.Errorf("NVML: GPU %s: %w", g.UUID, r)
	}
	d := SystemDetails(g.PCIBusID)
	has := func(symbol string) bool { return n.lib.Extensions().LookupSymbol(symbol) == nil }
	for symbol, read := range map[string]func(){
		"nvmlDeviceGetMemoryInfo":              func() { readMemory(v, &d) },
		"nvmlDeviceGetEnforcedPowerLimit":      func() { set[uint32](&d.PowerLimit)(v.GetEnforcedPowerLimit()) },
		"nvmlDeviceGetTotalEccErrors":          func() { readECC(v, &d) },
		"nvmlDeviceGetRemappedRows":            func() { readRemapped(v, &d) },
		"nvmlDeviceGetNvLinkState":             func() { readNVLinks(v, &d) },
		"nvmlDeviceGetComputeRunningProcesses": func() { readProcesses(v, &d) },
		"nvmlDeviceGetClockInfo": func() {
			set[uint32](&d.SMClock)(v.GetClockInfo(nvml.CLOCK_SM))
			set[uint32](&d.MemClock)(v.GetClockInfo(nvml.CLOCK_MEM))
		},
		"nvmlDeviceGetMaxClockInfo": func() { set[uint32](&d.MaxSMClock)(v.GetMaxClockInfo(nvml.CLOCK_SM)) },
		"nvmlDeviceGetCurrentClocksThrottleReasons": func() {
			if bits, r := v.GetCurrentClocksThrottleReasons(); r == nvml.SUCCESS {
				d.Throttled = throttled(bits)
			}
		},
		"nvmlDeviceGetCurrPcieLinkGeneration": func() { set[int](&d.PCIe.Generation)(v.GetCurrPcieLinkGeneration()) },
		"nvmlDeviceGetMaxPcieLinkGeneration":  func() { set[int](&d.PCIe.MaxGeneration)(v.GetMaxPcieLinkGeneration()) },
		"nvmlDeviceGetCurrPcieLinkWidth":      func() { set[int](&d.PCIe.Width)(v.GetCurrPcieLinkWidth()) },
		"nvmlDeviceGetMaxPcieLinkWidth":       func() { set[int](&d.PCIe.MaxWidth)(v.GetMaxPcieLinkWidth()) },
	} {
		if has(symbol) {
			read()
		}
	}
	if cores, err := n.Cores(g); err == nil {
		d.Cores = FormatCores(cores)
	}
	return d, nil
}

// number is a type of NVML's readings.
type number interface{ ~int | ~uint32 | ~uint64 }

// set returns a function that stores a reading that succeeded.
func set[N number](to *Reading) func(N, nvml.Return) {
	return func(n N, r nvml.Return) {
		if r == nvml.SUCCESS && uint64(n) <= math.MaxInt64 {
			*to = Reading(n)
		}
	}
}

func readMemory(v nvml.Device, d *Details) {
	if m, r := v.GetMemoryInfo(); r == nvml.SUCCESS {
		d.UsedBytes = Reading(m.Used)
	}
}

func readECC(v nvml.Device, d *Details) {
	set[uint64](&d.Corrected)(v.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC))
	set[uint64](&d.Uncorrected)(v.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC))
}

func readRemapped(v nvml.Device, d *Details) {
	corrected, uncorrected, pending, failed, r := v.GetRemappedRows()
	if r == nvml.SUCCESS {
		d.RemappedRows, d.RemapPending, d.RemapFailed = Reading(corrected+uncorrected), pending, failed
	}
}

func readNVLinks(v nvml.Device, d *Details) {
	for link := range nvml.NVLINK_MAX_LINKS {
		state, r := v.GetNvLinkState(link)
		if r != nvml.SUCCESS {
			return
		}
		d.NVLinks = append(d.NVLinks, state == nvml.FEATURE_ENABLED)
	}
}

func readProcesses(v nvml.Device, d *Details) {
	all, r := v.GetComputeRunningProcesses()
	if r != nvml.SUCCESS {
		return
	}
	for _, p := range all {
		used := Reading(Unknown)
		if p.UsedGpuMemory <= math.MaxInt64 { // else the driver does not tell
			used = Reading(p.UsedGpuMemory)
		}
		d.Processes = append(d.Processes, Process{PID: int(p.Pid), UsedBytes: used})
	}
}

// throttled names the reasons of nvmlClocksThrottleReasons that are set. An idle GPU and clocks that an operator has
// set are among them.
func throttled(bits uint64) []string {
	reasons := []struct {
		bit  uint64
		name string
	}{
		{nvml.ClocksThrottleReasonGpuIdle, "idle"},
		{nvml.ClocksThrottleReasonApplicationsClocksSetting, "application clocks"},
		{nvml.ClocksThrottleReasonSwPowerCap, "power cap"},
		{nvml.ClocksThrottleReasonHwSlowdown, "hardware slowdown"},
		{nvml.ClocksThrottleReasonSyncBoost, "sync boost"},
		{nvml.ClocksThrottleReasonSwThermalSlowdown, "thermal slowdown"},
		{nvml.ClocksThrottleReasonHwThermalSlowdown, "hardware thermal slowdown"},
		{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"},
		{nvml.ClocksThrottleReasonDisplayClockSetting, "display clocks"},
	}
	names := []string{}
	for _, reason := range reasons {
		if bits&reason.bit != 0 {
			names = append(names, reason.name)
		}
	}
	return names
}

// throttleReasons are the bits of NVML's throttle reasons and their names.
var throttleReasons = []struct {
	bit  uint64
	name string
}{
	{nvml.ClocksThrottleReasonSwPowerCap, "power cap"},
	{nvml.ClocksThrottleReasonHwSlowdown, "hardware slowdown"},
	{nvml.ClocksThrottleReasonSyncBoost, "sync boost"},
	{nvml.ClocksThrottleReasonSwThermalSlowdown, "temperature (software)"},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, "temperature (hardware)"},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"},
}

// Health implements Inventory.
func (n *nvmlInventory) Health(uuid string) (Health, error) {
	h := Health{Celsius: Unknown, Milliwatts: Unknown, SMClock: Unknown, MemoryClock: Unknown, UsedBytes: Unknown,
		Corrected: Unknown, Uncorrected: Unknown}
	d, r := n.lib.DeviceGetHandleByUUID(uuid)
	if r != nvml.SUCCESS {
		return h, fmt.Errorf("NVML: GPU %s: %w", uuid, r)
	}
	if c, r := d.GetTemperature(nvml.TEMPERATURE_GPU); r == nvml.SUCCESS {
		h.Celsius = int(c)
	}
	if p, r := d.GetPowerUsage(); r == nvml.SUCCESS {
		h.Milliwatts = int(p)
	}
	if c, r := d.GetClockInfo(nvml.CLOCK_SM); r == nvml.SUCCESS {
		h.SMClock = int(c)
	}
	if c, r := d.GetClockInfo(nvml.CLOCK_MEM); r == nvml.SUCCESS {
		h.MemoryClock = int(c)
	}
	if m, r := d.GetMemoryInfo(); r == nvml.SUCCESS {
		h.UsedBytes = int(m.Used)
	}
	if n, r := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC); r == nvml.SUCCESS {
		h.Corrected = int(n)
	}
	if n, r := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); r == nvml.SUCCESS {
		h.Uncorrected = int(n)
	}
	// Not its successor GetCurrentClocksEventReasons, which older drivers do not have.
	if bits, r := d.GetCurrentClocksThrottleReasons(); r == nvml.SUCCESS {
		for _, t := range throttleReasons {
			if bits&t.bit != 0 {
				h.Throttled = append(h.Throttled, t.name)
			}
		}
	}
	return h, nil
}
