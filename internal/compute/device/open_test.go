package device

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

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
			n, err := open(test.o, test.cuda, test.nvml)
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
	n, err := open(Options{"auto", LeastUtilized, true}, twoGPUs, openFake(near))
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

func TestPinWithoutNVML(t *testing.T) {
	n, err := open(Options{"auto", RoundRobin, true}, twoGPUs, noNVML)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Pin(Candidate{}, 1); !errors.Is(err, ErrNoNVML) {
		t.Errorf("got %v", err)
	}
}
