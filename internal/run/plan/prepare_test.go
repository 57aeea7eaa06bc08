package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// order returns an order to start ids of a run of three ranks.
func order(dir string, ids ...roster.Identity) *launch.Spec {
	return &launch.Spec{Dir: dir, Ranks: ids, Env: []string{configs.EnvJob + `={"keys": {"grid.nx": "64",
		"grid.ny": "128", "run.ranks": "3", "device.backend": "cpu"}}`}}
}

// A machine refuses ranks that the run does not have.
func TestPrepareRefusesRanksBeyondTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for rank, want := range map[int]string{
		-1: "order to start rank -1: run.ranks 3 allows 0 to 2", 3: "order to start rank 3: run.ranks 3 allows 0 to 2",
	} {
		_, err := Prepare(t.Context(), order(".", roster.Identity{Rank: rank, Size: 3, LocalSize: 1}))
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Ranks start in the home directory of a machine that does not have the launcher's working directory.
func TestPrepareEntersTheDirectory(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	home, there := filepath.Join(root, "home"), filepath.Join(root, "there")
	for _, dir := range []string{home, there} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	for dir, want := range map[string]string{there: there, filepath.Join(root, "not", "there"): home} {
		spec := order(dir, roster.Identity{Rank: 2, Size: 3, LocalSize: 1})
		done, err := Prepare(t.Context(), spec)
		if err != nil || done != nil {
			t.Fatalf("error %v, a service: %v", err, done != nil)
		}
		if at, err := os.Getwd(); err != nil || at != want || spec.Dir != want {
			t.Errorf("%s: in %s, the ranks in %s, want %s; error %v", dir, at, spec.Dir, want, err)
		}
	}
}

// Only the ranks that start on this machine need memory on it.
func TestPrepareCountsItsOwnRanks(t *testing.T) {
	ids := []roster.Identity{{Rank: 1, LocalRank: 0, LocalSize: 2}, {Rank: 2, LocalRank: 1, LocalSize: 2}}
	at, err := placesOf(ids, "here", 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []launch.Placement{{Rank: 0}, {Rank: 1, Host: "here", LocalSize: 2},
		{Rank: 2, Host: "here", LocalRank: 1, LocalSize: 2}}
	for r := range want {
		if at.Placements[r] != want[r] {
			t.Errorf("rank %d: %+v, want %+v", r, at.Placements[r], want[r])
		}
	}
	if at.RanksHere() != 2 {
		t.Errorf("%d ranks here, want 2", at.RanksHere())
	}
}

// Ranks with more threads than the machine has cores get a warning.
func TestBusyCores(t *testing.T) {
	p, err := planOf(t, "grid.nx=64", "grid.ny=128", "device.backend=cpu", "run.ranks=2", "device.threads=3")
	if err != nil {
		t.Fatal(err)
	}
	const want = "device.threads 3: 2 ranks on this machine keep 6 threads busy, and it has 5 cores"
	if got := strings.Join(p.busyCores(5), "; "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := p.busyCores(6); got != nil {
		t.Errorf("6 cores for 6 threads: %q", got)
	}
	many, err := planOf(t, "grid.nx=64", "grid.ny=128", "device.backend=cpu", "run.ranks=8")
	if err != nil {
		t.Fatal(err)
	}
	const share = "8 ranks share 2 cores of this machine: each waits while others compute; -np 2 gives each a core " +
		"of its own"
	if got := strings.Join(many.busyCores(2), "; "); got != share {
		t.Errorf("got %q, want %q", got, share)
	}
	if got := many.busyCores(8); got != nil {
		t.Errorf("8 cores for 8 ranks: %q", got)
	}
	if usual, err := planOf(t, "grid.nx=64", "grid.ny=128", "device.backend=cpu"); err != nil ||
		usual.busyCores(2) != nil {
		t.Errorf("the default number of ranks: error %v, %q", err, usual.busyCores(2))
	}
	if got := Times(1<<62, 3); got != 1<<63-1 {
		t.Errorf("a product beyond all integers: %d", got)
	}
}

// A warning names one GPU where it sweeps a small mesh clearly faster than all.
func TestSmallMeshOnGPUs(t *testing.T) {
	const four = "one GPU would be about 1.4 times as fast as 4: it sweeps 1024 x 1024 points in about 1.3µs, and " +
		"several GPUs need 2µs for a sweep of any mesh; use -np 1"
	const eight = "one GPU would be about 2.0 times as fast as 8: it sweeps 2048 x 2048 points in about 2.5µs, and " +
		"several GPUs need 5.1µs for a sweep of any mesh; use -np 1"
	for _, c := range []struct {
		gpus, ranks, points int
		dtype               solver.DType
		method              string
		want                string
	}{
		{4, 4, 1024, solver.Float32, "jacobi", four},
		{4, 4, 1024, solver.Float64, "jacobi", ""}, // 1.7 us on one: 16% less is not clear
		{4, 4, 2048, solver.Float32, "jacobi", ""},
		{8, 8, 2048, solver.Float32, "jacobi", eight},
		{1, 4, 1024, solver.Float32, "jacobi", ""},
		{0, 4, 1024, solver.Float32, "jacobi", ""},
		{4, 4, 1024, solver.Float32, "multigrid", ""},
	} {
		cfg := configs.Default()
		cfg.Solver.Method = c.method
		at, err := hosts.OnThisHost(c.ranks)
		if err != nil {
			t.Fatal(err)
		}
		mesh := solver.Mesh{NX: c.points, NY: c.points, DType: c.dtype}
		p := &Plan{Config: cfg, Places: at, Setup: &setup.Setup{Options: setup.Options{Mesh: mesh}}}
		for r := range c.ranks {
			if c.gpus > 0 {
				p.Choices = append(p.Choices, &device.Choice{Candidate: device.Candidate{Index: r % c.gpus}})
			}
		}
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if got := p.smallForGPUs(); !slices.Equal(got, want) {
			t.Errorf("%d GPUs, %d x %d %v, %s:\n%q, want\n%q", c.gpus, c.points, c.points, c.dtype, c.method, got, want)
		}
	}
}
