//go:build nvml && cgo

package device

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

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

// Health implements HealthReader.
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
