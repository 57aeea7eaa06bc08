//go:build nvml && cgo

package device

import (
	"errors"
	"reflect"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// fakeGPU is a GPU as NVML presents it. All its readings return r.
func fakeGPU(uuid string, r nvml.Return) *mock.Device {
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc: func() (string, nvml.Return) { return "Fake", nvml.SUCCESS },
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) {
			var p nvml.PciInfo
			for i, c := range []byte("00000000:0A:00.0") {
				p.BusId[i] = int8(c)
			}
			return p, nvml.SUCCESS
		},
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 100, Free: 60, Used: 40}, r },
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: 12, Memory: 34},
				r
		},
		GetTemperatureFunc: func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 45, r },
		GetPowerUsageFunc:  func() (uint32, nvml.Return) { return 67000, r },
		GetCpuAffinityFunc: func(cores int) ([]uint, nvml.Return) {
			words := make([]uint, cores/64)
			words[0], words[1] = 0b1011, 1
			return words, r
		},
	}
}

// fakeNVML is a library that lists the given GPUs.
func fakeNVML(gpus ...nvml.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:                   func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc:         func() (int, nvml.Return) { return len(gpus), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) { return gpus[i], nvml.SUCCESS },
		DeviceGetHandleByUUIDFunc: func(uuid string) (nvml.Device, nvml.Return) {
			for _, g := range gpus {
				if id, _ := g.GetUUID(); id == uuid {
					return g, nvml.SUCCESS
				}
			}
			return nil, nvml.ERROR_NOT_FOUND
		},
	}
}

func TestNVMLReadings(t *testing.T) {
	n, err := openNVML(fakeNVML(fakeGPU("GPU-a", nvml.SUCCESS), fakeGPU("GPU-b", nvml.ERROR_NOT_SUPPORTED)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.GPUs()
	want := []GPU{
		{Index: 0, Name: "Fake", UUID: "GPU-a", PCIBusID: "00000000:0A:00.0", FreeBytes: 60, TotalBytes: 100,
			Utilization: 12, Celsius: 45, Milliwatts: 67000},
		{Index: 1, Name: "Fake", UUID: "GPU-b", PCIBusID: "00000000:0A:00.0", FreeBytes: -1, TotalBytes: -1,
			Utilization: -1, Celsius: -1, Milliwatts: -1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if cores, err := n.Cores(got[0]); err != nil || FormatCores(cores) != "0-1,3,64" {
		t.Errorf("got cores %s, %v", FormatCores(cores), err)
	}
	for uuid, want := range map[string]string{
		"GPU-b": "NVML: cores near GPU 9: ERROR_NOT_SUPPORTED",
		"GPU-c": "NVML: GPU GPU-c: ERROR_NOT_FOUND",
	} {
		if _, err := n.Cores(GPU{Index: 9, UUID: uuid}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestNVMLErrors(t *testing.T) {
	for r, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "NVML is not available: the loader finds no libnvidia-ml.so.1, which comes " +
			"with the NVIDIA driver",
		nvml.ERROR_DRIVER_NOT_LOADED: "NVML is not available: start NVML: ERROR_DRIVER_NOT_LOADED",
	} {
		_, err := openNVML(&mock.Interface{InitFunc: func() nvml.Return { return r }})
		if !errors.Is(err, ErrNoNVML) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	lost := fakeGPU("", nvml.SUCCESS)
	lost.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	n, err := openNVML(fakeNVML(fakeGPU("GPU-a", nvml.SUCCESS), lost))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.GPUs(); !errors.Is(err, nvml.ERROR_GPU_IS_LOST) ||
		err.Error() != "NVML: GPU 1: UUID: ERROR_GPU_IS_LOST" {
		t.Errorf("got %v", err)
	}
}

func TestNVMLHealth(t *testing.T) {
	d := fakeGPU("GPU-a", nvml.SUCCESS)
	d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) {
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1980, nvml.CLOCK_MEM: 3201}[c], nvml.SUCCESS
	}
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		if kind == nvml.MEMORY_ERROR_TYPE_CORRECTED {
			return 2, nvml.SUCCESS
		}
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) {
		return nvml.ClocksThrottleReasonGpuIdle | nvml.ClocksThrottleReasonSwPowerCap |
			nvml.ClocksThrottleReasonHwThermalSlowdown, nvml.SUCCESS
	}
	n, err := openNVML(fakeNVML(d))
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Health("GPU-a")
	want := Health{Celsius: 45, Milliwatts: 67000, SMClock: 1980, MemoryClock: 3201, UsedBytes: 40, Corrected: 2,
		Uncorrected: -1, Throttled: []string{"power cap", "temperature (hardware)"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := n.Health("GPU-b"); err == nil ||
		err.Error() != "NVML: GPU GPU-b: ERROR_NOT_FOUND" {
		t.Errorf("got %v", err)
	}
}
