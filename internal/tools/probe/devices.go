package probe

import (
	"context"
	"fmt"
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

// SelectionReport says which GPU each rank of a run on this node would take.
type SelectionReport struct {
	Policy device.Policy `json:"device.select"`
	GPUs   []int         `json:"gpus"`            // CUDA's indices, by local rank
	Why    string        `json:"why,omitempty"`   // of local rank 0
	Fault  string        `json:"fault,omitempty"` // why ranks cannot select so here
}

// devicesReport is the data of the part devices.
type devicesReport struct {
	Driver    string            `json:"cuda_driver,omitempty"` // the CUDA version that it supports
	NoGPU     string            `json:"no_gpu,omitempty"`
	NoNVML    string            `json:"no_nvml,omitempty"`
	Processor string            `json:"processor"`
	GPUs      []DeviceReport    `json:"gpus"`
	Selection []SelectionReport `json:"selection"`
}

// devices reads the GPUs of this node.
func devices(_ context.Context, m *Machine) (Result, error) {
	d := devicesReport{Processor: device.Processor(), GPUs: []DeviceReport{}, Selection: []SelectionReport{}}
	if m.NoGPU != nil {
		d.NoGPU = m.NoGPU.Error()
		return Result{Data: d, Text: table(d.Processor + "\n"), NotRun: "no GPU: " + d.NoGPU}, nil
	}
	d.Driver = m.Driver.Version().String()
	r := Result{}
	var readings []device.GPU
	err := m.NoNVML
	if err == nil {
		readings, err = m.Inventory.GPUs()
	}
	if err != nil {
		d.NoNVML = err.Error()
		r.NotRun = "readings of NVML: " + d.NoNVML
	}
	for i := range m.GPUs {
		report, err := m.describe(i, readings)
		if err != nil {
			r.NotRun = strings.TrimPrefix(r.NotRun+"; "+err.Error(), "; ")
		}
		d.GPUs = append(d.GPUs, report)
		report.judge(&r)
	}
	d.Selection = m.selections(readings, err)
	r.Data, r.Text = d, d.text()
	return r, nil
}

// describe reads GPU i.
func (m *Machine) describe(i int, readings []device.GPU) (DeviceReport, error) {
	v := m.GPUs[i]
	r := DeviceReport{Index: v.Index, Name: v.Name, UUID: v.UUID, PCIBusID: v.PCIBusID, SMs: v.SMs,
		Capability: fmt.Sprintf("%d.%d", v.Major, v.Minor), TotalBytes: v.TotalBytes, FreeBytes: device.Unknown,
		Utilization: device.Unknown, Celsius: device.Unknown, Milliwatts: device.Unknown,
		Details: device.SystemDetails(v.PCIBusID)}
	if readings == nil {
		return r, nil
	}
	g, err := device.Find(m.candidate(i), readings)
	if err != nil {
		return r, err
	}
	r.NVML, r.FreeBytes, r.Utilization = &g.Index, device.Reading(g.FreeBytes), device.Reading(g.Utilization)
	r.Celsius, r.Milliwatts = device.Reading(g.Celsius), device.Reading(g.Milliwatts)
	details, err := m.Inventory.Details(g)
	if err != nil {
		return r, err
	}
	r.Details = details
	return r, nil
}

// candidate returns GPU i as package device names it.
func (m *Machine) candidate(i int) device.Candidate {
	v := m.GPUs[i]
	return device.Candidate{Index: v.Index, Name: v.Name, UUID: v.UUID, PCIBusID: v.PCIBusID}
}

// selections says which GPUs the ranks of this node would take under each policy. noReadings is why there are none.
func (m *Machine) selections(readings []device.GPU, noReadings error) (all []SelectionReport) {
	var candidates []device.Candidate
	for i := range m.GPUs {
		candidates = append(candidates, m.candidate(i))
	}
	for _, p := range device.Policies() {
		s := SelectionReport{Policy: p, GPUs: []int{}}
		for rank := range m.Ranks {
			var c device.Choice
			err := noReadings
			if err == nil || p == device.RoundRobin {
				c, err = device.Select(p, rank, candidates, readings)
			}
			if err != nil {
				s.GPUs, s.Fault = []int{}, err.Error()
				break
			}
			if rank == 0 {
				s.Why = c.Why
			}
			s.GPUs = append(s.GPUs, c.Index)
		}
		all = append(all, s)
	}
	return all
}

// judge adds what is wrong with the GPU to res.
func (d DeviceReport) judge(res *Result) {
	if d.Uncorrected > 0 {
		res.find("GPU %d: %s uncorrected since the driver was loaded.", d.Index,
			english.Plural(int(d.Uncorrected), "error of its memory is", "errors of its memory are"))
	}
	if d.RemapFailed {
		res.find("GPU %d: no spare row of memory is left for one that fails; the GPU is due for replacement.", d.Index)
	}
	if d.RemapPending {
		res.find("GPU %d: a failing row of memory is to be replaced at the next reset of the GPU.", d.Index)
	}
	for _, why := range d.Throttled {
		switch why {
		case "idle", "application clocks", "display clocks":
		default:
			res.find("GPU %d: its clocks are lower than they might be: %s.", d.Index, why)
		}
	}
	if w := d.PCIe; w.Width > 0 && w.Width < w.MaxWidth {
		res.find("GPU %d: its PCIe link has %d lanes of %d.", d.Index, w.Width, w.MaxWidth)
	}
	active := 0
	for _, on := range d.NVLinks {
		if on {
			active++
		}
	}
	if active > 0 && active < len(d.NVLinks) {
		res.find("GPU %d: %d of %d NVLinks are active.", d.Index, active, len(d.NVLinks))
	}
	if len(d.Processes) > 0 && d.Utilization > 0 {
		res.find("GPU %d: %s it, %d%% of the time; figures of this GPU may be low.", d.Index,
			english.Plural(len(d.Processes), "other process uses", "other processes use"), d.Utilization)
	}
	if d.Uncorrected != device.Unknown {
		res.add(float64(d.Uncorrected), "", "devices.gpu%d.ecc_uncorrected", d.Index)
	}
	if d.FreeBytes != device.Unknown {
		res.add(float64(d.FreeBytes), "B", "devices.gpu%d.memory_free", d.Index)
	}
}

// text returns the tables of the part.
func (d devicesReport) text() string {
	var state, health strings.Builder
	state.WriteString("GPU\tname\tPCI bus\tfree of memory\tload\ttemperature\tpower\tSM clock\n")
	health.WriteString("GPU\tPCIe\tNVLinks\tcores\tECC errors\trows remapped\tprocesses\tclocks limited by\n")
	for _, g := range d.GPUs {
		fmt.Fprintf(&state, "%d\t%s\t%s\t%s of %s\t%s\t%s\t%s\t%s\n", g.Index, g.Name, g.PCIBusID,
			reading(g.FreeBytes, size), size(g.TotalBytes), unit(g.Utilization, "%"), unit(g.Celsius, " C"), g.power(),
			unit(g.SMClock, " MHz"))
		fmt.Fprintf(&health, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", g.Index, g.link(), g.nvlinks(), orNone(g.Cores),
			g.ecc(), unit(g.RemappedRows, ""), len(g.Processes), orNone(strings.Join(g.Throttled, ", ")))
	}
	text := fmt.Sprintf("  %s; CUDA %s\n", d.Processor, d.Driver) + table(state.String()) + table(health.String())
	for _, s := range d.Selection {
		what := "local ranks take GPUs " + strings.Trim(fmt.Sprint(s.GPUs), "[]")
		if s.Fault != "" {
			what = s.Fault
		}
		text += fmt.Sprintf("  device.select %s: %s\n", s.Policy, what)
	}
	return text
}

func (d DeviceReport) power() string {
	if d.Milliwatts == device.Unknown {
		return "-"
	}
	text := fmt.Sprintf("%d", d.Milliwatts/1000)
	if d.PowerLimit != device.Unknown {
		text += fmt.Sprintf(" of %d", d.PowerLimit/1000)
	}
	return text + " W"
}

func (d DeviceReport) link() string {
	if d.PCIe.Width == device.Unknown {
		return "-"
	}
	return fmt.Sprintf("gen %s x%d", unit(d.PCIe.Generation, ""), d.PCIe.Width)
}

func (d DeviceReport) nvlinks() string {
	if len(d.NVLinks) == 0 {
		return "-"
	}
	active := 0
	for _, on := range d.NVLinks {
		if on {
			active++
		}
	}
	return fmt.Sprintf("%d of %d", active, len(d.NVLinks))
}

func (d DeviceReport) ecc() string {
	if d.Corrected == device.Unknown {
		return "-"
	}
	return fmt.Sprintf("%d + %d", d.Corrected, d.Uncorrected)
}

// unit formats a reading; "-" if it is unknown.
func unit(r device.Reading, unit string) string {
	return reading(r, func(n int64) string { return fmt.Sprint(n) + unit })
}

func reading(r device.Reading, format func(int64) string) string {
	if r == device.Unknown {
		return "-"
	}
	return format(int64(r))
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
