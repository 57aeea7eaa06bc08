package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"jacobi/internal/compute/device"
)

// DeviceReport describes one GPU. The readings are null without NVML, but for those that Linux has, too.
type DeviceReport struct {
	Index       int            `json:"index"` // CUDA's
	Name        string         `json:"name"`
	UUID        string         `json:"uuid"`
	PCIBusID    string         `json:"pci_bus_id"`
	Capability  string         `json:"compute_capability"`
	SMs         int            `json:"multiprocessors"`
	TotalBytes  int64          `json:"memory_total_bytes"`
	NVML        *int           `json:"nvml_index"` // nil without a reading
	FreeBytes   device.Reading `json:"memory_free_bytes"`
	Utilization device.Reading `json:"utilization_percent"`
	Celsius     device.Reading `json:"temperature_celsius"`
	Milliwatts  device.Reading `json:"power_milliwatts"`
	device.Details
}

// devicesReport is the data of the part devices.
type devicesReport struct {
	Driver    string         `json:"cuda_driver,omitempty"` // the CUDA version that it supports
	NoGPU     string         `json:"no_gpu,omitempty"`
	NoNVML    string         `json:"no_nvml,omitempty"`
	Processor string         `json:"processor"`
	GPUs      []DeviceReport `json:"gpus"`
}

// devices reads the GPUs of this node.
func devices(_ context.Context, m *Machine) (r Result, err error) {
	d := devicesReport{Processor: device.Processor(), GPUs: []DeviceReport{}}
	defer func() { r.Details = d }()
	if m.NoGPU != nil {
		d.NoGPU = m.NoGPU.Error()
		r.say("%s", d.Processor)
		r.skip("no GPU: %s", d.NoGPU)
		return r, nil
	}
	d.Driver = m.Driver.Version().String()
	r.say("%s; CUDA %s", d.Processor, d.Driver)
	_, noReadings := m.readings()
	if noReadings != nil {
		d.NoNVML = noReadings.Error()
		r.skip("readings of NVML: %s", d.NoNVML)
	}
	for i := range m.GPUs {
		report, err := m.describe(i)
		if noReadings == nil && err != nil {
			r.skip("%v", err)
		}
		d.GPUs = append(d.GPUs, report)
		report.judge(&r)
	}
	r.showDevices(d.GPUs)
	return r, nil
}

// readings returns NVML's readings of all GPUs.
func (m *Machine) readings() ([]device.GPU, error) {
	if m.Inventory == nil {
		return nil, m.NoNVML
	}
	return m.Inventory.GPUs()
}

// describe reads GPU i.
func (m *Machine) describe(i int) (DeviceReport, error) {
	v := m.GPUs[i]
	r := DeviceReport{Index: v.Index, Name: v.Name, UUID: v.UUID, PCIBusID: v.PCIBusID, SMs: v.SMs,
		Capability: fmt.Sprintf("%d.%d", v.Major, v.Minor), TotalBytes: v.TotalBytes, FreeBytes: device.Unknown,
		Utilization: device.Unknown, Celsius: device.Unknown, Milliwatts: device.Unknown,
		Details: device.SystemDetails(v.PCIBusID)}
	g, err := m.find(i)
	if err != nil {
		return r, err
	}
	details, err := m.Inventory.Details(g)
	if err != nil {
		return r, err
	}
	r.NVML, r.FreeBytes, r.Utilization = &g.Index, device.Reading(g.FreeBytes), device.Reading(g.Utilization)
	r.Celsius, r.Milliwatts, r.Details = device.Reading(g.Celsius), device.Reading(g.Milliwatts), details
	return r, nil
}

// find returns the readings of GPU i.
func (m *Machine) find(i int) (device.GPU, error) {
	readings, err := m.readings()
	if err != nil {
		return device.GPU{}, err
	}
	v := m.GPUs[i]
	return device.Find(device.Candidate{Index: v.Index, Name: v.Name, UUID: v.UUID, PCIBusID: v.PCIBusID}, readings)
}

// judge adds what is wrong with the GPU to res.
func (d DeviceReport) judge(res *Result) {
	find := func(is bool, format string, args ...any) {
		if is {
			res.find("GPU %d: %s", d.Index, fmt.Sprintf(format, args...))
		}
	}
	find(d.Uncorrected > 0, "%s uncorrected since the driver was loaded.",
		english.Plural(int(d.Uncorrected), "error of its memory is", "errors of its memory are"))
	find(d.RemapFailed, "no spare row of memory is left for one that fails; the GPU is due for replacement.")
	find(d.RemapPending, "a failing row of memory is to be replaced at the next reset of the GPU.")
	for _, why := range d.Throttled {
		find(!slices.Contains([]string{"idle", "application clocks", "display clocks"}, why),
			"its clocks are lower than they might be: %s.", why)
	}
	find(d.PCIe.Width > 0 && d.PCIe.Width < d.PCIe.MaxWidth, "its PCIe link has %d lanes of %d.", d.PCIe.Width,
		d.PCIe.MaxWidth)
	active := d.activeLinks()
	find(active > 0 && active < len(d.NVLinks), "%d of %d NVLinks are active.", active, len(d.NVLinks))
	find(len(d.Processes) > 0 && d.Utilization > 0, "%s it, %d%% of the time; figures of this GPU may be low.",
		english.Plural(len(d.Processes), "other process uses", "other processes use"), d.Utilization)
	if d.Uncorrected != device.Unknown {
		res.add(float64(d.Uncorrected), "", "devices.gpu%d.ecc_uncorrected", d.Index)
	}
	if d.FreeBytes != device.Unknown {
		res.add(float64(d.FreeBytes), "B", "devices.gpu%d.memory_free", d.Index)
	}
}

// showDevices adds two tables.
func (r *Result) showDevices(all []DeviceReport) {
	state := newTable("", "GPU|name|PCI bus|memory:B|free:B|load:%|temperature|power|limit|SM clock")
	health := newTable("", "GPU|PCIe|NVLinks|cores|ECC errors|rows remapped|processes|clocks limited by")
	for _, d := range all {
		state.row(d.Index, d.Name, d.PCIBusID, float64(d.TotalBytes), known(d.FreeBytes, 1, ""),
			known(d.Utilization, 100, ""), known(d.Celsius, 1, "%.0f C"), known(d.Milliwatts, 1000, "%.0f W"),
			known(d.PowerLimit, 1000, "%.0f W"), known(d.SMClock, 1, "%.0f MHz"))
		var links, errs, link any
		if d.PCIe.Width != device.Unknown {
			link = fmt.Sprintf("%v x%d", known(d.PCIe.Generation, 1, "gen %.0f"), d.PCIe.Width)
		}
		if len(d.NVLinks) > 0 {
			links = fmt.Sprintf("%d of %d", d.activeLinks(), len(d.NVLinks))
		}
		if d.Corrected != device.Unknown {
			errs = fmt.Sprintf("%d + %d", d.Corrected, d.Uncorrected)
		}
		health.row(d.Index, link, links, orNone(d.Cores), errs, known(d.RemappedRows, 1, "%.0f"), len(d.Processes),
			orNone(strings.Join(d.Throttled, ", ")))
	}
	r.show(state)
	r.show(health)
}

// activeLinks returns how many NVLinks are active.
func (d DeviceReport) activeLinks() (n int) {
	for _, on := range d.NVLinks {
		if on {
			n++
		}
	}
	return n
}

// known returns a cell with a reading in another unit, as a number or formatted; nil if it is not known.
func known(v device.Reading, unit float64, format string) any {
	if v == device.Unknown {
		return nil
	} else if format == "" {
		return float64(v) / unit
	}
	return fmt.Sprintf(format, float64(v)/unit)
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}
