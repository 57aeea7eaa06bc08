package device

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/cuda/driver"
)

var errTest = errors.New("broken")

func twoGPUs() (*driver.Driver, []driver.Device, error) {
	return new(driver.Driver), []driver.Device{{Index: 0, Name: "C", UUID: "GPU-cc"},
		{Index: 1, Name: "A", UUID: "GPU-aa"}}, nil
}

func noCUDA() (*driver.Driver, []driver.Device, error) {
	return nil, nil, fmt.Errorf("%w: none", driver.ErrNoDriver)
}

func noNVML() (Inventory, error) { return nil, fmt.Errorf("%w: none", ErrNoNVML) }

// openFake is a node with the readings of select_test.go.
func openFake(near unix.CPUSet) func() (Inventory, error) {
	return func() (Inventory, error) { return fakeInventory{gpus: gpus, cores: near}, nil }
}

func openAndRead(o Options, cuda func() (*driver.Driver, []driver.Device, error), nvml func() (Inventory, error)) (
	*Node, error) {
	n, err := open(o, cuda)
	if err != nil {
		return nil, err
	}
	return n, n.read(nvml)
}

func TestOpen(t *testing.T) {
	for _, test := range []struct {
		name   string
		o      Options
		cuda   func() (*driver.Driver, []driver.Device, error)
		nvml   func() (Inventory, error)
		gpus   int // GPUs that the process may use
		read   bool
		whyCPU string
		noNVML string
		err    string
	}{
		{name: "cpu", o: Options{"cpu", Coolest, true}, whyCPU: `device.backend "cpu"`},
		{name: "auto without CUDA", o: Options{"auto", Coolest, true}, cuda: noCUDA, whyCPU: "no CUDA driver: none"},
		{name: "cuda without CUDA", o: Options{"cuda", RoundRobin, true}, cuda: noCUDA,
			err: `device.backend "cuda": no CUDA driver: none; allowed here are auto and cpu`},
		{name: "no readings needed", o: Options{"auto", RoundRobin, false}, cuda: twoGPUs, gpus: 2},
		{name: "readings to pin", o: Options{"auto", RoundRobin, true}, cuda: twoGPUs, nvml: openFake(coreSet(0)),
			gpus: 2, read: true},
		{name: "readings to select", o: Options{"cuda", LeastPower, false}, cuda: twoGPUs, nvml: openFake(coreSet(0)),
			gpus: 2, read: true},
		{name: "no NVML to pin", o: Options{"auto", RoundRobin, true}, cuda: twoGPUs, nvml: noNVML, gpus: 2,
			noNVML: "NVML is not available: none"},
		{name: "no NVML to select", o: Options{"auto", Coolest, false}, cuda: twoGPUs, nvml: noNVML,
			err: `device.select "coolest": NVML is not available: none; allowed here is round-robin`},
		{name: "NVML that cannot read", o: Options{"auto", LeastUtilized, false}, cuda: twoGPUs,
			nvml: func() (Inventory, error) { return fakeInventory{err: errTest}, nil },
			err:  `device.select "least-utilized": broken; allowed here is round-robin`},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, err := openAndRead(test.o, test.cuda, test.nvml)
			if text(err) != test.err {
				t.Fatalf("got error %v, want %s", err, test.err)
			}
			if err != nil {
				return
			}
			if len(n.Devices) != test.gpus || (n.Readings != nil) != test.read || text(n.WhyCPU) != test.whyCPU ||
				text(n.NoNVML) != test.noNVML {
				t.Errorf("got %+v", n)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A rank selects among its own GPUs by the readings that another rank took, and is pinned near the GPU selected.
func TestNodeSelectsAndPins(t *testing.T) {
	allowed := allowedCores(t)
	defer func() {
		if err := Pin(allowed); err != nil {
			t.Error(err)
		}
	}()
	near := coreSet(1000) // a core that this machine does not have
	for c := range 1000 {
		if allowed.IsSet(c) {
			near.Set(c)
			break
		}
	}
	n, err := openAndRead(Options{"auto", LeastUtilized, true}, twoGPUs, openFake(near))
	if err != nil {
		t.Fatal(err)
	}
	want := Choice{Candidate{Index: 0, Name: "C", UUID: "GPU-cc"},
		"least-utilized: local rank 2, number 1 of 2 by utilization (10%)"}
	c, err := n.Select(2, n.Readings)
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, %v; want %+v", c, err, want)
	}
	busy := []GPU{{UUID: "GPU-cc", Utilization: 99}, {UUID: "GPU-aa", Utilization: 98}}
	if c, err := n.Select(2, busy); err != nil || c.UUID != "GPU-aa" {
		t.Errorf("by the readings of another rank: got %+v, %v", c, err)
	}
	near[1000/64] = 0
	few := fmt.Sprintf("too few cores are near the GPU: 1 core (%s) for 2 ranks", FormatCores(near))
	if _, err := n.Pin(c.Candidate, 2); !errors.Is(err, ErrFewCores) || err.Error() != few ||
		allowedCores(t) != allowed {
		t.Errorf("got %v, on %s; want %s", err, FormatCores(allowedCores(t)), few)
	}
	cores, err := n.Pin(c.Candidate, 1)
	if now := allowedCores(t); err != nil || cores != FormatCores(near) || now != near {
		t.Errorf("pinned to %s, %v; is on %s, want %s", cores, err, FormatCores(now), FormatCores(near))
	}
}

// NVML is opened once, and its readings serve the GPU that was foreseen and any other one.
func TestForesee(t *testing.T) {
	for _, pin := range []bool{true, false} {
		n, err := open(Options{"auto", RoundRobin, pin}, twoGPUs)
		if err != nil {
			t.Fatal(err)
		}
		opened := 0
		n.foresee(Candidate{UUID: "GPU-cc"}, func() (Inventory, error) {
			opened++
			return openFake(allowedCores(t))()
		})
		if pin {
			for _, uuid := range []string{"GPU-cc", "GPU-aa", "GPU-xx"} {
				_, err := n.Pin(Candidate{UUID: uuid}, 1<<20)
				if known := uuid != "GPU-xx"; errors.Is(err, ErrFewCores) != known || err == nil {
					t.Errorf("%s: %v", uuid, err)
				}
			}
		}
		if err := n.Close(); err != nil || (opened == 1) != pin {
			t.Errorf("NVML was opened %d times; %v", opened, err)
		}
	}
}

func TestPinWithoutNVML(t *testing.T) {
	n, err := openAndRead(Options{"auto", RoundRobin, true}, twoGPUs, noNVML)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Pin(Candidate{}, 1); !errors.Is(err, ErrNoNVML) {
		t.Errorf("got %v", err)
	}
}

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

// policies are all policies, the default first.
var policies = []Policy{RoundRobin, LeastUtilized, MostFreeMemory, Coolest, LeastPower}

// The run file accepts exactly these policies.
func TestPoliciesAreThoseOfTheRunFile(t *testing.T) {
	c := configs.Default()
	var names []string
	for _, p := range policies {
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
	if p := Policy(configs.Default().Device.Select); p != policies[0] {
		t.Errorf("the default is %s, the first policy %s", p, policies[0])
	}
}
