package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize/english"

	"jacobi/cuda/driver"
	"jacobi/internal/observe/output"
)

// needGPU returns the number of GPUs, or skips the test visibly if there are none.
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

// GPUs compute the same bits as the CPU, for any number of ranks and GPUs, depth, transport and type.
func TestSameBitsOnGPUs(t *testing.T) {
	gpus := needGPU(t)
	for name, problem := range problems {
		for _, dtype := range []string{"float32", "float64"} {
			t.Run(name+"/"+dtype, func(t *testing.T) {
				t.Parallel() // a process on a GPU starts slowly
				base := with(problem, "grid.dtype="+dtype, "output.picture=", "output.field=")
				want, _ := solve(t, onRanks(1, with(base, "halo.depth=1")...)...)
				for _, np := range []int{1, 2, 3, 5, 8} {
					depths := map[string][]string{"p2p": {"1", "20", "auto"}, "nats": {"2", "auto"}}
					if np == 8 {
						depths["p2p"][1] = "5" // of 16 rows
					}
					if np == 1 {
						delete(depths, "nats") // a single rank has no neighbour to reach over NATS
					}
					for transport := range depths {
						for _, depth := range depths[transport] {
							args := onRanks(np, with(base, "device.backend=cuda", "halo.transport="+transport,
								"halo.depth="+depth)...)
							got, r := solve(t, args...)
							same(t, got, want, args)
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

// Halos of several passes give the bits of shallow ones, also where a GPU does a pass in many low parts, of which
// several read the rows of one halo.
func TestDeepHalosOnGPUs(t *testing.T) {
	gpus := needGPU(t)
	base := []string{"grid.nx=2048", "grid.ny=2048", "solver.max_iterations=4000", "output.picture=", "output.field=",
		"device.backend=cuda"}
	want, _ := solve(t, onRanks(1, base...)...)
	for np := 2; np <= min(gpus, 4); np++ {
		for _, depth := range []string{"64", "256"} {
			got, _ := solve(t, onRanks(np, with(base, "halo.depth="+depth)...)...)
			same(t, got, want, np, depth)
		}
	}
	if gpus < 2 {
		t.Log("NOT RUN: halos of several passes between GPUs need two of them")
	}
}

// The time in which a GPU sweeps does not count as a wait for norms: a single rank waits for no other.
func TestTimesOfARankOnGPUs(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	mustRun(t, dir, "launcher", onRanks(1, "grid.nx=2048", "grid.ny=2048", "solver.max_iterations=10000",
		"solver.tolerance=0", "output.field=", "output.picture=", "device.backend=cuda")...)
	var r output.Report
	if err := json.Unmarshal([]byte(readText(t, dir, "out", "report.json")), &r); err != nil {
		t.Fatal(err)
	}
	k := r.Ranks[0]
	if k.Compute <= k.NormWait || k.Compute+k.NormWait > r.Times.Sweeps {
		t.Errorf("of %g s, compute %g s, norm wait %g s: want most in compute", r.Times.Sweeps, k.Compute, k.NormWait)
	}
	if k.HaloWait != nil {
		t.Errorf("halo wait %g s, want null: the GPU has the rows itself", *k.HaloWait)
	}
}

// The streams of a killed rank's neighbours wait for a word in memory that never comes; if each rank has its own GPU,
// their kernels do. The neighbours must end all the same.
func TestKilledRankOnGPUsEndsTheRun(t *testing.T) {
	gpus := needGPU(t)
	for _, np := range []int{gpus, 8} {
		for _, transport := range []string{"p2p", "nats"} {
			t.Run(fmt.Sprintf("np=%d/%s", np, transport),
				func(t *testing.T) { killRank(t, np, "device.backend=cuda", "halo.transport="+transport) })
		}
	}
}

// Without a GPU, device.backend cuda is refused before anything starts.
func TestNoGPUIsAClearError(t *testing.T) {
	if _, err := driver.Open(); err == nil {
		t.Skip("NOT RUN: this machine has a GPU")
	}
	out := run(t, t.TempDir(), "launcher", append(set("grid.nx=64", "grid.ny=64", "device.backend=cuda"), "-np",
		"2")...)
	const want = `device.backend "cuda": no CUDA driver: the loader looked for libcuda.so.1`
	if out.code != 1 || !strings.Contains(out.stderr, want) {
		t.Errorf("exit code %d, %s; want 1 and %s", out.code, out.stderr, want)
	}
}

// On real GPUs, ranks are spread over the GPUs for every device.select, and each rank is pinned to the cores near its
// GPU.
func TestDevicesOnGPUs(t *testing.T) {
	gpus := needGPU(t)
	needNVML(t)
	for _, selection := range []string{"round-robin", "least-utilized", "most-free-memory", "coolest", "least-power"} {
		_, r := solve(t, onRanks(gpus, "grid.nx=256", "grid.ny=256", "solver.max_iterations=100",
			"device.backend=cuda", "device.select="+selection)...)
		taken := map[string]bool{}
		for _, rank := range r.Ranks {
			taken[rank.GPU.UUID] = true
			if !strings.HasPrefix(rank.GPU.Why, selection+": local rank "+strconv.Itoa(rank.Rank)) {
				t.Errorf("%s: rank %d took its GPU because %q", selection, rank.Rank, rank.GPU.Why)
			}
		}
		if len(taken) != gpus {
			t.Errorf("%s: %d ranks took %d different GPUs", selection, gpus, len(taken))
		}
	}

	l := begin(t, t.TempDir(), append(onRanks(gpus+1, "device.backend=cuda"), "-v")...)
	pids := l.allRanks(gpus + 1)
	shared := fmt.Sprintf("%d ranks share %s on ", gpus+1, english.Plural(gpus, "GPU", ""))
	if n := strings.Count(l.seen.String(), shared); n != 1 {
		t.Errorf("%d lines tell of shared GPUs, want 1\n%s", n, l.seen.String())
	}
	cores := map[string]string{} // by rank
	for _, m := range regexp.MustCompile(`(?m)^\[(\d+)\] .*"uuid":"[^"]*".*"cores":"([^"]*)"`).FindAllStringSubmatch(
		l.seen.String(), -1) {
		cores[m[1]] = m[2]
	}
	if len(cores) == 0 {
		t.Logf("NOT RUN: no rank was pinned:\n%s", l.seen.String())
	}
	for _, pid := range pids {
		rank := environ(t, pid, "JACOBI_RANK")
		if cores[rank] == "" {
			continue
		}
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			if on := allowedList(pid, task.Name()); on != "" && on != cores[rank] {
				t.Errorf("thread %s of rank %s may use cores %s, want %s", task.Name(), rank, on, cores[rank])
			}
		}
	}
	l.signal(os.Interrupt)
	l.ends(130)
}

// environ returns an environment variable of a process.
func environ(t *testing.T, pid int, name string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.SplitSeq(string(data), "\x00") {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	t.Fatalf("process %d has no %s", pid, name)
	return ""
}

// allowedList returns the cores that a thread may use, in the kernel's notation, or "" if the thread has ended.
func allowedList(pid int, thread string) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, thread))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}
