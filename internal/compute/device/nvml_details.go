//go:build nvml && cgo

package device

import (
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

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
