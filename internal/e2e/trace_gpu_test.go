package e2e

import (
	"maps"
	"slices"
	"testing"
	"time"

	"jacobi/internal/observe/trace"
	"jacobi/internal/observe/trace/traceread"
)

// gpuTracks are the tracks of a rank's GPU.
var gpuTracks = []string{"GPU, stream 0", "GPU, stream 1"}

// within checks that the work of GPUs that do all work when they are given it lies within the slice of the host that
// gives it, as far as the clocks are known, and that the work in one stream does not overlap. It returns the number of
// slices of each name, over both streams of a rank.
func within(t *testing.T, tr traceread.Trace, rank int, hosts map[string][]string) map[string]int {
	t.Helper()
	i := slices.IndexFunc(tr.About.GPUs, func(g trace.GPUClock) bool { return g.Rank == rank })
	if i < 0 {
		t.Fatalf("no clock of the GPU of rank %d: %+v", rank, tr.About.GPUs)
	}
	bound := time.Duration(tr.About.GPUs[i].Error)
	counts, k := map[string]int{}, tr.Ranks[rank]
	for _, track := range gpuTracks {
		var end time.Duration
		for _, s := range k.Tracks[track] {
			counts[s.Name]++
			if s.Start < end || s.Depth != 0 {
				t.Errorf("rank %d, %s: %+v begins within the slice before it", rank, track, s)
			}
			end = s.Start + s.Took
			if !slices.ContainsFunc(k.Tracks["solver"], func(h traceread.Slice) bool {
				return slices.Contains(hosts[s.Name], h.Name) && h.Args["pass"] == s.Args["pass"] &&
					s.Start >= h.Start-bound && end <= h.Start+h.Took+bound
			}) {
				t.Errorf("rank %d, %s: %+v is within none of %q, clock known to %v", rank, track, s,
					hosts[s.Name], bound)
			}
		}
	}
	return counts
}

// The work of GPUs has tracks of its own, whose clock is that of the host. These GPUs do everything at once.
func TestTraceOfGPUs(t *testing.T) {
	env := fakeCUDA(t, "-DNORM=1")
	keys := set("grid.nx=256", "grid.ny=256", "device.backend=cuda", "solver.tolerance=0",
		"halo.depth=4", "solver.max_iterations=60", "trace.to=60")
	// There are 15 passes. The last one sweeps the whole stripe at once. The copies for files come after sweep 60.
	for _, c := range []struct {
		ranks string
		keys  []string
		want  map[string]int
	}{
		{"1", nil, map[string]int{"sweep": 15, "sums to host": 15}},
		{"2", nil, map[string]int{"sweep": 1, "sweep edges": 28, "sweep interior": 14, "sums to host": 15,
			"rows to host": 28, "rows from host": 28}},
		{"2", set("trace.passes=2"), map[string]int{"sweep": 1, "sweep edges": 6, "sweep interior": 3,
			"sums to host": 4, "rows to host": 6, "rows from host": 6}},
		{"1", set("trace.from=8", "trace.to=16"), map[string]int{"sweep": 2, "sums to host": 2}},
	} {
		got, tr, r := tracedWith(t, env, append(append(keys, c.keys...), "-np", c.ranks)...)
		if len(c.keys) == 0 && c.ranks != "1" {
			agree(t, tr, r)
		}
		if len(tr.About.GPUs) != len(tr.Ranks) {
			t.Errorf("clocks of GPUs %+v", tr.About.GPUs)
		}
		for rank := range tr.Ranks {
			counts := within(t, tr, rank, map[string][]string{
				"sweep": {"edges", "interior"}, "sweep edges": {"edges"}, "sweep interior": {"interior"},
				"sums to host": {"interior"}, "rows to host": {"send halos"},
				"rows from host": {"wait for halos"},
			})
			if !maps.Equal(counts, c.want) {
				t.Errorf("%s ranks, %q: rank %d has %v, want %v", c.ranks, c.keys, rank, counts, c.want)
			}
		}
		if plain, _ := solveWith(t, env, append(keys, "-np", c.ranks)...); got.history != plain.history {
			t.Errorf("%s ranks: with a trace %+v, without %+v", c.ranks, got, plain)
		}
	}
}

// traceOfEmulatedMultigrid checks that multigrid has a track of the GPU, too. The work follows the host's launches in
// their order, each piece at its own time.
func traceOfEmulatedMultigrid(t *testing.T, env []string) {
	t.Helper()
	args := append(set(cycling("grid.nx=130", "grid.ny=81", "device.backend=cuda", "solver.tolerance=0",
		"solver.relative_tolerance=1e-1", "solver.start=full")...), "-np", "2")
	got, tr, r := tracedWith(t, env, args...)
	if plain, _ := solveWith(t, env, args...); got != plain {
		t.Errorf("with a trace %+v, without %+v", got, plain)
	}
	if len(tr.About.GPUs) != len(tr.Ranks) || len(r.Ranks) != len(tr.Ranks) {
		t.Fatalf("clocks of GPUs %+v of %d ranks", tr.About.GPUs, len(tr.Ranks))
	}
	for rank, k := range tr.Ranks {
		launches := map[string][]traceread.Slice{}
		for _, s := range k.Tracks["solver"] {
			launches[s.Name] = append(launches[s.Name], s)
		}
		work, end := map[string]int{}, time.Duration(0)
		for _, s := range k.Tracks[gpuTracks[0]] {
			if s.Start < end || s.Depth != 0 {
				t.Errorf("rank %d: %+v begins within the slice before it", rank, s)
			}
			end = s.Start + s.Took
			n, from := work[s.Name], launches[s.Name]
			work[s.Name]++
			if n < len(from) && s.Start < from[n].Start-time.Duration(tr.About.GPUs[rank].Error) {
				t.Errorf("rank %d: %+v begins before the host's %+v", rank, s, from[n])
			}
		}
		for _, name := range []string{"down, level 0", "up, level 0", "interpolate"} {
			if work[name] != len(launches[name]) || work[name] == 0 {
				t.Errorf("rank %d: %d of %q on the GPU, %d on the host", rank, work[name], name, len(launches[name]))
			}
		}
		if work["rows to neighbour"] == 0 || work["rows to neighbour"] != work["await rows"] {
			t.Errorf("rank %d: %v", rank, work)
		}
	}
}
