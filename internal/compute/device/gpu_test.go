//go:build nvml && cgo

package device

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestGPU opens the devices as ranks do, and compares the readings of NVML with CUDA's for the same GPUs.
func TestGPU(t *testing.T) {
	n, err := Open(Options{Backend: "auto", Select: RoundRobin, Pin: true})
	if err != nil {
		t.Fatal(err)
	}
	if n.WhyCPU != nil {
		t.Skipf("NOT RUN, no GPU: %s: %v", t.Name(), n.WhyCPU)
	}
	if err := n.Read(); err != nil || n.NoNVML != nil {
		t.Fatal(err, n.NoNVML)
	}
	for _, v := range n.Devices {
		byUUID, err := Find(Candidate{UUID: v.UUID}, n.Readings)
		if err != nil {
			t.Error(err)
		}
		byBus, err := Find(Candidate{PCIBusID: v.PCIBusID}, n.Readings)
		if err != nil || byBus != byUUID {
			t.Errorf("by bus id %+v, %v; by UUID %+v", byBus, err, byUUID)
		}
		if byUUID.Name != v.Name || byUUID.TotalBytes < v.TotalBytes || byUUID.FreeBytes <= 0 ||
			byUUID.FreeBytes > byUUID.TotalBytes {
			t.Errorf("%+v is not %+v", byUUID, v)
		}
		t.Logf("%+v", byUUID)
	}
	for _, p := range policies {
		n.policy = p
		taken := map[string]bool{}
		for rank := range n.Devices {
			c, err := n.Select(rank, n.Readings)
			if err != nil {
				t.Error(err)
			}
			t.Logf("GPU %d (%s): %s", c.Index, c.UUID, c.Why)
			taken[c.UUID] = true
		}
		if len(taken) != len(n.Devices) {
			t.Errorf("%s: ranks take %d of %d GPUs", p, len(taken), len(n.Devices))
		}
	}
	n.policy = RoundRobin
	before := allowedCores(t)
	defer func() {
		if err := errors.Join(Pin(before), n.Close()); err != nil {
			t.Error(err)
		}
	}()
	c, err := n.Select(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	cores, err := n.Pin(c.Candidate, 1)
	if errors.Is(err, ErrNoCores) {
		t.Skipf("NOT RUN: pinning near a GPU: %v", err)
	}
	if now := allowedCores(t); err != nil || cores == "" || FormatCores(now) != cores {
		t.Errorf("pinned to %q, %v; is on %s", cores, err, FormatCores(now))
	}
	t.Logf("cores %s of %s", cores, FormatCores(before))
}

// NVML's UUIDs equal those of nvidia-smi.
func TestGPUUUIDs(t *testing.T) {
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		t.Skipf("NOT RUN, no GPU: %s needs nvidia-smi", t.Name())
	}
	out, err := exec.Command(smi, "--query-gpu=index,uuid", "--format=csv,noheader").Output()
	if err != nil {
		t.Fatal(err)
	}
	nvml, err := OpenNVML()
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := nvml.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range gpus {
		lines = append(lines, fmt.Sprintf("%d, %s", g.Index, g.UUID))
	}
	if got := strings.Join(lines, "\n") + "\n"; got != string(out) {
		t.Errorf("got\n%swant\n%s", got, out)
	}
	if err := nvml.Close(); err != nil {
		t.Error(err)
	}
}
