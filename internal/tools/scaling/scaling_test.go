package scaling

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/device"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

func TestSpeedUpAndEfficiency(t *testing.T) {
	for _, c := range []struct {
		kind                Kind
		serial, parallel    float64
		ranks               int
		speedUp, efficiency float64
	}{
		{Strong, 8, 8, 1, 1, 1},
		{Strong, 8, 2.5, 4, 3.2, 0.8},
		{Strong, 0.3, 0.3, 1, 1, 1},
		{Strong, 1, 2, 2, 0.5, 0.25},
		{Weak, 8, 8, 1, 1, 1},
		{Weak, 8, 10, 4, 3.2, 0.8},
		{Weak, 1, 0.5, 2, 4, 2},
	} {
		if s, e := c.kind.SpeedUp(c.serial, c.parallel, c.ranks),
			c.kind.Efficiency(c.serial, c.parallel, c.ranks); s != c.speedUp || e != c.efficiency {
			t.Errorf("%s, %v s and %v s on %d ranks: speed-up %v, efficiency %v; want %v, %v", c.kind, c.serial,
				c.parallel, c.ranks, s, e, c.speedUp, c.efficiency)
		}
	}
	if got := Traffic(531.25, 4); got != 4250 {
		t.Errorf("531.25 GLUP/s of float32: %v GB/s, want 4250", got)
	}
}

// report returns the report of a run on 128 x 512 points in float64.
func report(ranks int, seconds float64) output.Report {
	r := output.Report{
		Version: "v1", Problem: "gtc2019", Mesh: output.MeshReport{NX: 128, NY: 512, DType: "float64"}, Depth: 3,
		Sweeps: 1000,
		Times:  output.TimesReport{Setup: 9, Sweeps: seconds}, GLUPS: 128 * 512 * 1000 / seconds / 1e9,
		FieldHash: "ab",
		Started:   time.Unix(int64(100*seconds), 0).UTC(),
	}
	for i := range ranks {
		r.Ranks = append(r.Ranks, output.RankReport{Rank: i, Device: "cpu avx2, 1 thread", Kernel: "avx2", Threads: 1,
			Transports: map[string]output.LinkReport{
				"top":    {Neighbour: (i + ranks - 1) % ranks, Transport: "nats"},
				"bottom": {Neighbour: (i + 1) % ranks, Transport: "shared memory", Why: "same node"},
			}})
	}
	return r
}

// records returns records of 1 and 2 ranks. The first one has no roofline.
func records(t *testing.T) []Record {
	t.Helper()
	one, err := NewRecord(Strong, []output.Report{report(1, 4), report(1, 2), report(1, 3)})
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewRecord(Strong, []output.Report{report(2, 1.25)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Record{&one, &two} {
		r.Against(one)
	}
	two.Roofline(two.Traffic / 2 * 1e9)
	two.Host, two.Processor, two.Cores = "node", "chip", 2
	return []Record{one, two}
}

func TestRecord(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	all := records(t)
	glups := 128. * 512 * 1000 / 1.25 / 1e9
	want := Record{
		Scaling: Strong, Problem: "gtc2019", NX: 128, NY: 512, DType: "float64", Ranks: 2, Sweeps: 1000, Depth: 3,
		Seconds: []float64{1.25},
		Serial:  number(2), Parallel: 1.25, SpeedUp: number(1.6), Efficiency: number(0.8),
		GLUPS: glups, Traffic: 16 * glups, CopyRate: number(8 * glups), CopyFraction: number(2), FieldHash: "ab",
		Transports: []Pair{{0, 1, "shared memory", "same node"}, {1, 0, "shared memory", "same node"}},
		Devices:    []string{"cpu avx2, 1 thread", "cpu avx2, 1 thread"}, Kernel: "avx2", Threads: 1,
		Host: "node", Processor: "chip", Cores: 2, Version: "v1", Started: time.Unix(125, 0).UTC(),
	}
	if !reflect.DeepEqual(all[1], want) {
		t.Errorf("got %+v\nwant %+v", all[1], want)
	}
	one := all[0]
	if one.Parallel != 2 || *one.Serial != 2 || *one.SpeedUp != 1 || *one.Efficiency != 1 ||
		!reflect.DeepEqual(one.Seconds, []float64{4, 2, 3}) ||
		!one.Started.Equal(time.Unix(200, 0)) || one.CopyRate != nil || one.CopyFraction != nil {
		t.Errorf("the fastest of 4, 2 and 3 seconds: %+v", one)
	}
}

func TestRunsThatDifferAreRefused(t *testing.T) {
	other := report(1, 1)
	other.FieldHash = "cd"
	_, err := NewRecord(Weak, []output.Report{report(1, 1), other})
	if want := "run 2 gave 1000 sweeps to the field cd, run 1 1000 to ab: they must be the same"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = NewRecord(Weak, []output.Report{report(1, 1), {FieldHash: "ab", Sweeps: 1000}})
	if want := "run 2 took 0 s for 1000 sweeps: too short to be measured"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	all := records(t)
	if err := all[1].SameField(all[0]); err != nil {
		t.Error(err)
	}
	all[1].FieldHash = "cd"
	err = all[1].SameField(all[0])
	if want := "2 ranks gave the field cd, 1 gave ab: they must be the same"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCSV(t *testing.T) {
	all := records(t)
	all[0].Serial = nil
	got, err := CSV(all)
	if err != nil {
		t.Fatal(err)
	}
	const want = "scaling,problem,nx,ny,dtype,ranks,sweeps,depth,seconds,t_s,t_p,speed_up,efficiency,glups,gb_s," +
		"copy_gb_s,copy_fraction,field_hash,transports,devices,kernel,threads,host,processor,cores,version,started" +
		"\n" +
		"strong,gtc2019,128,512,float64,1,1000,3,4; 2; 3,,2,1,1,0.032768,0.524288,,,ab,0-0 shared memory," +
		"\"cpu avx2, 1 thread\",avx2,1,,,0,v1,1970-01-01T00:03:20Z\n" +
		"strong,gtc2019,128,512,float64,2,1000,3,1.25,2,1.25,1.6,0.8,0.0524288,0.8388608,0.4194304,2,ab," +
		"0-1 shared memory; 1-0 shared memory,\"cpu avx2, 1 thread; cpu avx2, 1 thread\",avx2,1,node,chip,2,v1," +
		"1970-01-01T00:02:05Z\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTable(t *testing.T) {
	all := records(t)
	all[0].Serial, all[0].SpeedUp, all[0].Efficiency = nil, nil, nil
	got := Header() + all[0].Row() + all[1].Row()
	const want = "" +
		"      nx x ny ranks depth       T_s       T_p speed-up effic.    GLUP/s     GB/s of copy  halos by\n" +
		"      128x512     1     3         -         2        -      -     0.033    0.524       -  itself\n" +
		"      128x512     2     3         2      1.25     1.60  0.800     0.052    0.839    200%  shared\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	wide := Record{NX: 131072, NY: 524288, Ranks: 4096, Depth: 32, Parallel: 0.00012345, GLUPS: 123456.78,
		Traffic:    1975308.4,
		Transports: []Pair{{0, 1, "peer memory", ""}, {1, 0, "nats", ""}}}
	for line := range strings.Lines(wide.Row() + Header() + Strong.Definition() + ".\n" + Weak.Definition() + ".\n" +
		Legend + "\n") {
		if len(line) > 101 { // with the newline
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

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
	rates := CopyRates{map[any]float64{cpuCopyOf(p): 123, 0: 5., 1: 7.}}
	if rate, err := rates.Of(t.Context(), p); rate != 123 || err != nil {
		t.Errorf("%v, %v", rate, err)
	}
	gpus := *p // two ranks share GPU 1, one has GPU 0
	gpus.GPUs = make([]driver.Device, 2)
	gpus.Choices = []*device.Choice{{Candidate: device.Candidate{Index: 1}}, {},
		{Candidate: device.Candidate{Index: 1}}}
	if rate, err := rates.Of(t.Context(), &gpus); rate != 12 || err != nil {
		t.Errorf("two GPUs: %v, %v", rate, err)
	}
	p.Places = hosts.Places{Placements: launch.OneHost("elsewhere.invalid", 2)}
	if rate, err := rates.Of(t.Context(), p); rate != 0 || err != nil {
		t.Errorf("another host: %v, %v", rate, err)
	}
}
