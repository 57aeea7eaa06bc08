package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"jacobi/cuda/driver"
)

// needGPU returns the number of GPUs, or says visibly that the test did not run.
func needGPU(t *testing.T) int {
	t.Helper()
	d, err := driver.Open()
	if errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice) {
		t.Skipf("NOT RUN, no GPU: %s: %v", t.Name(), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return len(devices)
}

// GPUs give the bits of the CPU, for any number of ranks and GPUs, depth, transport and type.
func TestSameBitsOnGPUs(t *testing.T) {
	gpus := needGPU(t)
	for name, problem := range problems {
		for _, dtype := range []string{"float32", "float64"} {
			t.Run(name+"/"+dtype, func(t *testing.T) {
				base := append([]string{"grid.dtype=" + dtype, "output.picture=", "output.field="}, problem...)
				want, _ := solve(t, append(set(append(base, "halo.depth=1")...), "-np", "1")...)
				depths := map[string][]string{"p2p": {"1", "5", "auto"}, "nats": {"2"}} // a process on a GPU takes a while to start
				for _, np := range []int{1, 2, 3, 5, 8} {
					for transport := range depths {
						for _, depth := range depths[transport] {
							if np == 1 && transport == "nats" {
								continue // a rank alone has no neighbour to reach over NATS
							}
							got, r := solve(t, append(set(append(base, "device.backend=cuda", "halo.transport="+transport, "halo.depth="+depth)...), "-np", strconv.Itoa(np))...)
							if got != want {
								t.Errorf("np %d, %s, depth %s: %d sweeps (%s), field %s; want %d (%s), %s; histories equal: %v",
									np, transport, depth, got.sweeps, got.reason, got.sha, want.sweeps, want.reason, want.sha, got.history == want.history)
							}
							for i, rank := range r.Ranks {
								if device := fmt.Sprintf("cuda %d, ", i%gpus); !strings.HasPrefix(rank.Device, device) {
									t.Errorf("np %d: rank %d swept on %q, want %q", np, i, rank.Device, device)
								}
							}
						}
					}
				}
			})
		}
	}
}

// A rank that is killed leaves its neighbours' streams waiting for a word in their memory; they end all the same.
func TestKilledRankOnGPUsEndsTheRun(t *testing.T) {
	needGPU(t)
	for _, transport := range []string{"p2p", "nats"} {
		t.Run(transport, func(t *testing.T) { killRank(t, "device.backend=cuda", "halo.transport="+transport) })
	}
}

// Without a GPU, device.backend cuda is refused before anything starts.
func TestNoGPUIsAClearError(t *testing.T) {
	if _, err := driver.Open(); err == nil {
		t.Skip("NOT RUN: this machine has a GPU")
	}
	out := run(t, t.TempDir(), "launcher", append(set("grid.nx=64", "grid.ny=64", "device.backend=cuda"), "-np", "2")...)
	const want = `device.backend "cuda": no CUDA driver: the loader looked for libcuda.so.1`
	if out.code != 1 || !strings.Contains(out.stderr, want) {
		t.Errorf("exit code %d, %s; want 1 and %s", out.code, out.stderr, want)
	}
}
