package tune

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// between is a link between two nodes. 174 us and 0.85 GB/s fit the seven speeds of TestSweepSeconds.
func between(trip time.Duration) linkTime {
	return linkTime{From: 0, To: 1, Trip: trip, Large: trip + 310*time.Microsecond}
}

// The estimates are near the speeds measured on two nodes of two H200s each: see docs/results.md.
func TestSweepSeconds(t *testing.T) {
	for _, c := range []struct {
		n        int
		mode     halo.Mode
		depth    int
		measured float64 // GLUP/s
	}{
		{2048, halo.ModeAuto, 256, 374}, {2048, halo.ModeDirect, 16, 284}, {2048, halo.ModeDirect, 256, 689},
		{16384, halo.ModeAuto, 16, 3030}, {16384, halo.ModeDirect, 16, 5548},
		{32768, halo.ModeAuto, 16, 6516}, {32768, halo.ModeDirect, 16, 9054},
	} {
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: solver.Float32}
		d := deepening{mesh: mesh, minRows: solver.MinRows(mesh.Interior(), 4), mode: c.mode,
			links: []linkTime{between(174 * time.Microsecond)}}
		seconds, _ := d.sweepSeconds(setup.Depth{Rows: c.depth, Sweeps: 16})
		got := float64(c.n) * float64(c.n) / seconds / 1e9
		if math.Abs(got/c.measured-1) > 0.2 {
			t.Errorf("%d, %s, depth %d: %.0f GLUP/s, measured %.0f", c.n, c.mode, c.depth, got, c.measured)
		}
	}
}

// The choices follow the speeds measured, in GLUP/s.
func TestChooseDepth(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		n       int
		dtype   solver.DType
		ranks   int
		prefers int
		mode    halo.Mode
		trip    time.Duration
		want    int
	}{
		{2048, solver.Float32, 4, 16, halo.ModeAuto, 174 * us, 256},   // 374 with 256
		{2048, solver.Float32, 4, 16, halo.ModeDirect, 174 * us, 256}, // 284 with 16, 689 with 256
		{16384, solver.Float32, 4, 16, halo.ModeDirect, 174 * us, 16}, // 5,548 with 16
		{16384, solver.Float32, 4, 16, halo.ModeAuto, 174 * us, 16},   // the bytes of a row count, whatever the depth
		{16384, solver.Float64, 2, 12, halo.ModeDirect, 490 * us, 12},
		{2048, solver.Float32, 16, 16, halo.ModeAuto, 490 * us, 64}, // of about 120 rows
		{2048, solver.Float64, 2, 12, halo.ModeAuto, 490 * us, 192}, // 12 times a power of two
		{64, solver.Float32, 2, 16, halo.ModeAuto, 490 * us, 16},    // of fewer than 32 rows
		{1024, solver.Float32, 2, 1, halo.ModeAuto, time.Second, 256},
	} {
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: c.dtype}
		d := deepening{mesh: mesh, minRows: solver.MinRows(mesh.Interior(), c.ranks), mode: c.mode,
			links: []linkTime{between(c.trip / 10), between(c.trip)}}
		got := d.choose(setup.Depth{Rows: c.prefers, Sweeps: c.prefers})
		want := setup.Depth{Rows: c.want, Sweeps: c.prefers, Why: "auto: " + between(c.trip).String()}
		if got != want {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
	if got, want := between(490*us).String(), "490µs from rank 0 to 1 over NATS, 800µs with 256 KiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A link without a measurement leaves the depth that the backends prefer.
func TestNoMeasurementNoDeeperHalo(t *testing.T) {
	mesh := solver.Mesh{NX: 2048, NY: 2048, DType: solver.Float32}
	d := deepening{mesh: mesh, minRows: 1023, links: []linkTime{between(time.Second),
		{From: 1, To: 2, Fault: "rank 2 did not answer rank 1 within 2s"}}}
	want := setup.Depth{Rows: 16, Sweeps: 16,
		Why: "auto: preferred by the backends; rank 2 did not answer rank 1 within 2s"}
	if got := d.choose(setup.Depth{Rows: 16, Sweeps: 16}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The halos of ranks on CPUs follow from the speed of the slowest: they make up for the time of the network, and deeper
// ones would cost more than they save. GPUs in the same run change nothing.
func TestChooseDepthOnCPUs(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		n     int
		mode  halo.Mode
		trip  time.Duration
		rates []float64
		want  int
	}{
		{2048, halo.ModeAuto, 5 * ms, []float64{8e9, 6.4e9}, 128},
		{2048, halo.ModeDirect, 5 * ms, []float64{8e9, 6.4e9}, 128},
		{2048, halo.ModeAuto, 5 * ms, []float64{0, 6.4e9, 0}, 128}, // two GPUs
		{4096, halo.ModeAuto, 5 * ms, []float64{6e9, 6e9}, 64},
		{16384, halo.ModeAuto, ms / 5, []float64{1e11, 1e11}, 16}, // less than 3% could be saved
		{16384, halo.ModeAuto, 5 * ms, []float64{1e11, 1e11}, 128},
	} {
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: solver.Float32}
		d := deepening{mesh: mesh, minRows: solver.MinRows(mesh.Interior(), 2), mode: c.mode,
			links: []linkTime{between(c.trip)}, rates: c.rates}
		got := d.choose(setup.Depth{Rows: 16, Sweeps: 16})
		want := setup.Depth{Rows: c.want, Sweeps: 16,
			Why: fmt.Sprintf("auto: %v; a rank sweeps %.1f GLUP/s", between(c.trip), slices.Max(c.rates[1:2])/1e9)}
		if got != want {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
}

// A run whose network costs more than its other nodes save says so.
func TestOneNodeWouldBeFaster(t *testing.T) {
	members := func(nodes ...string) (all []roster.Member) {
		for _, n := range nodes {
			all = append(all, roster.Member{Host: "on-" + n, Node: shm.Node{Boot: n}})
		}
		return all
	}
	for _, c := range []struct {
		name  string
		nodes []roster.Member
		rates []float64
		trip  time.Duration
		want  string
	}{
		{"slow network", members("a", "b", "b"), []float64{6e9, 6e9, 6e9}, 100 * time.Millisecond,
			"the ranks of on-b alone would be about 3.0 times as fast as those of 2 nodes: a sweep takes 350.5µs, " +
				"and with the network about 1.0664ms"},
		{"fast network", members("a", "b"), []float64{6e9, 6e9}, time.Millisecond, ""},
		{"one node", members("a", "a"), []float64{6e9, 6e9}, time.Second, ""},
		{"GPUs", members("a", "b"), []float64{0, 0}, 490 * time.Microsecond,
			"the ranks of on-a alone would be about 5.8 times as fast as those of 2 nodes: a sweep takes 2.6µs, " +
				"and with the network about 14.9µs"},
	} {
		mesh := solver.Mesh{NX: 2048, NY: 2048, DType: solver.Float32}
		d := deepening{mesh: mesh, minRows: 680, links: []linkTime{between(c.trip)}, rates: c.rates}
		if got := d.alone(c.nodes, setup.Depth{Rows: 128, Sweeps: 16}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
