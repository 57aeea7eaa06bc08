package device

import (
	"errors"
	"strings"
	"testing"

	"jacobi/configs"
)

// CUDA lists the node's GPUs 2, 0 and 1 of NVML, but not 3.
var (
	candidates = []Candidate{
		{Index: 0, UUID: "GPU-cc", PCIBusID: "0000:0C:00.0"},
		{Index: 1, UUID: "GPU-aa", PCIBusID: "0000:0A:00.0"},
		{Index: 2, UUID: "GPU-bb", PCIBusID: "0000:0B:00.0"},
	}
	gpus = []GPU{
		{Index: 0, Name: "A", UUID: "GPU-aa", PCIBusID: "00000000:0A:00.0", FreeBytes: 30, Utilization: 50, Celsius: 40,
			Milliwatts: 70000},
		{Index: 1, Name: "B", UUID: "GPU-bb", PCIBusID: "00000000:0B:00.0", FreeBytes: 20, Utilization: 10, Celsius: 60,
			Milliwatts: 80000},
		{Index: 2, Name: "C", UUID: "GPU-cc", PCIBusID: "00000000:0C:00.0", FreeBytes: 10, Utilization: 10, Celsius: 50,
			Milliwatts: 90000},
		{Index: 3, Name: "D", UUID: "GPU-dd", PCIBusID: "00000000:0D:00.0", FreeBytes: 99, Utilization: 0, Celsius: 1,
			Milliwatts: 1},
	}
)

func TestSelect(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		want   [5]int // CUDA's index, by local rank
		why    string // of local rank 4
	}{
		{RoundRobin, [5]int{0, 1, 2, 0, 1}, "round-robin: local rank 4, 3 GPUs"},
		{LeastUtilized, [5]int{0, 2, 1, 0, 2}, "least-utilized: local rank 4, number 2 of 3 by utilization (10%)"},
		{MostFreeMemory, [5]int{1, 2, 0, 1, 2}, "most-free-memory: local rank 4, number 2 of 3 by free memory (20 B)"},
		{Coolest, [5]int{1, 0, 2, 1, 0}, "coolest: local rank 4, number 2 of 3 by temperature (50 C)"},
		{LeastPower, [5]int{1, 2, 0, 1, 2}, "least-power: local rank 4, number 2 of 3 by power (80.0 W)"},
	} {
		for rank, want := range test.want {
			c, err := Select(test.policy, rank, candidates, gpus)
			if err != nil || c.Candidate != candidates[want] || rank == 4 && c.Why != test.why {
				t.Errorf("%s, local rank %d: got %+v, %v; want CUDA's GPU %d, %s", test.policy, rank, c, err, want,
					test.why)
			}
		}
	}
}

func TestSelectByRoundRobinNeedsNoReadings(t *testing.T) {
	if c, err := Select(RoundRobin, 4, candidates, nil); err != nil || c.Index != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestSelectErrors(t *testing.T) {
	silent := GPU{Index: 7, Name: "S", UUID: "GPU-ss", FreeBytes: Unknown, Utilization: Unknown, Celsius: Unknown,
		Milliwatts: Unknown}
	for _, test := range []struct {
		policy     Policy
		candidates []Candidate
		text       string
	}{
		{RoundRobin, nil, "no GPU to choose from"},
		{Coolest, []Candidate{{Index: 5, UUID: "GPU-ee", PCIBusID: "0000:0E:00.0"}},
			`device.select "coolest": CUDA's GPU 5 (GPU-ee, 0000:0E:00.0) is none of the 1 that NVML lists`},
		{LeastUtilized, []Candidate{{UUID: "GPU-ss"}},
			`device.select "least-utilized": NVML has no such reading of GPU 7 (S); allowed here is round-robin`},
		{MostFreeMemory, []Candidate{{UUID: "GPU-ss"}},
			`device.select "most-free-memory": NVML has no such reading of GPU 7 (S); allowed here is round-robin`},
		{Coolest, []Candidate{{UUID: "GPU-ss"}},
			`device.select "coolest": NVML has no such reading of GPU 7 (S); allowed here is round-robin`},
		{LeastPower, []Candidate{{UUID: "GPU-ss"}},
			`device.select "least-power": NVML has no such reading of GPU 7 (S); allowed here is round-robin`},
		{"nicest", []Candidate{{UUID: "GPU-ss"}}, `device.select "nicest" is unknown`},
	} {
		_, err := Select(test.policy, 0, test.candidates, []GPU{silent})
		if err == nil || err.Error() != test.text || (test.candidates == nil) != errors.Is(err, ErrNoCandidate) {
			t.Errorf("%s: got %v, want %s", test.policy, err, test.text)
		}
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name string
		c    Candidate
		want int // NVML's index; -1: none
	}{
		{"by UUID, whatever the bus id", Candidate{UUID: "GPU-BB", PCIBusID: "0000:0A:00.0"}, 1},
		{"by bus id, for a slice of a GPU", Candidate{UUID: "MIG-12", PCIBusID: "0000:0c:00.0"}, 2},
		{"by bus id in another domain", Candidate{UUID: "MIG-12", PCIBusID: "0001:0c:00.0"}, -1},
		{"without anything", Candidate{}, -1},
	} {
		g, err := Find(test.c, gpus)
		if (err != nil) != (test.want < 0) || err == nil && g.Index != test.want {
			t.Errorf("%s: got GPU %d, %v; want %d", test.name, g.Index, err, test.want)
		}
	}
	if pciKey("00010002:0A:00.0") != pciKey("10002:0a:00.0") || pciKey("00000000:0A:00.0") != pciKey("0000:0a:00.0") {
		t.Error("domains of different lengths do not compare")
	}
}

// The run file accepts exactly these policies.
func TestPoliciesAreThoseOfTheRunFile(t *testing.T) {
	c := configs.Default()
	var names []string
	for _, p := range Policies() {
		names = append(names, string(p))
		c.Device.Select = string(p)
		if err := configs.Validate(c); err != nil {
			t.Error(err)
		}
	}
	c.Device.Select = "nicest"
	last := len(names) - 1
	want := `device.select "nicest": allowed are ` + strings.Join(names[:last], ", ") + " and " + names[last]
	if err := configs.Validate(c); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if p := Policy(configs.Default().Device.Select); p != Policies()[0] {
		t.Errorf("the default is %s, the first policy %s", p, Policies()[0])
	}
}
