package scaling

import (
	"runtime"
	"testing"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/device"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// planOf returns the plan of a run on this machine, for arguments of --set.
func planOf(t *testing.T, set ...string) (*plan.Plan, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	cfg, err := configs.Load(configs.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Make(t.Context(), cfg, hosts.Where{MapBy: "slot"}, func(text string) { t.Error(text) })
}

// The copy that a run is compared with has the field's size and as many threads as all ranks together.
func TestCPUCopy(t *testing.T) {
	cores := runtime.NumCPU()
	for _, c := range []struct {
		set  []string
		want cpuCopy
	}{
		{[]string{"run.ranks=2"}, cpuCopy{bytes: 64 * 128 * 4, threads: cores}},
		{[]string{"run.ranks=2", "grid.dtype=float64", "device.threads=1"},
			cpuCopy{bytes: 64 * 128 * 8, threads: min(2, cores)}},
		{[]string{"run.ranks=1", "device.threads=1000"}, cpuCopy{bytes: 64 * 128 * 4, threads: cores}},
	} {
		p, err := planOf(t, append([]string{"grid.nx=64", "grid.ny=128", "device.backend=cpu"}, c.set...)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := cpuCopyOf(p); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.set, got, c.want)
		}
	}
}

// Each copy is measured once, and none is measured if ranks are on other machines.
func TestCopyRatesAreKept(t *testing.T) {
	p, err := planOf(t, "grid.nx=64", "grid.ny=128", "device.backend=cpu", "run.ranks=2")
	if err != nil {
		t.Fatal(err)
	}
	if p.Places, err = hosts.OnThisHost(2); err != nil {
		t.Fatal(err)
	}
	rates := CopyRates{cpu: map[cpuCopy]float64{cpuCopyOf(p): 123}}
	if rate, err := rates.Of(t.Context(), p); rate != 123 || err != nil {
		t.Errorf("%v, %v", rate, err)
	}
	gpus := *p // two ranks share GPU 1, one has GPU 0
	gpus.GPUs = make([]driver.Device, 2)
	gpus.Choices = []*device.Choice{{Candidate: device.Candidate{Index: 1}}, {},
		{Candidate: device.Candidate{Index: 1}}}
	rates.gpu = map[int]float64{0: 5, 1: 7}
	if rate, err := rates.Of(t.Context(), &gpus); rate != 12 || err != nil {
		t.Errorf("two GPUs: %v, %v", rate, err)
	}
	p.Places = hosts.Places{Ranks: launch.OneHost("elsewhere.invalid", 2)}
	if rate, err := rates.Of(t.Context(), p); rate != 0 || err != nil {
		t.Errorf("another host: %v, %v", rate, err)
	}
}
