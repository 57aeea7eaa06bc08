package rank

import (
	"math"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// The least preference of any rank counts, but no more rows than the lowest stripe has, and always one.
func TestCommonDepth(t *testing.T) {
	for _, test := range []struct {
		preferred []int // by rank
		minRows   int
		want      int
	}{
		{[]int{32, 12, 20}, 100, 12},
		{[]int{32, 12, 20}, 8, 8},
		{[]int{0, 12}, 8, 1},
		{[]int{16}, 0, 1},
	} {
		var members []roster.Member
		for _, depth := range test.preferred {
			members = append(members, roster.Member{Depth: depth})
		}
		if got := commonDepth(members, test.minRows); got != (haloDepth{Rows: test.want, Sweeps: test.want}) {
			t.Errorf("preferred %v, at least %d rows: %+v, want %d", test.preferred, test.minRows, got, test.want)
		}
	}
}

// between is a link between two nodes. 490 us and 0.35 GB/s fit the six speeds of TestSweepSeconds.
func between(trip time.Duration) linkTime {
	return linkTime{From: 0, To: 1, Trip: trip, Large: trip + 750*time.Microsecond}
}

// The estimates are within 9% of the speeds measured on two nodes of one H200 each: see docs/results.md.
func TestSweepSeconds(t *testing.T) {
	mesh := solver.Mesh{NX: 2048, NY: 2048, DType: solver.Float32}
	for _, c := range []struct {
		mode     halo.Mode
		depth    int
		measured float64 // GLUP/s
	}{
		{halo.ModeAuto, 16, 74}, {halo.ModeAuto, 64, 125}, {halo.ModeAuto, 256, 166},
		{halo.ModeDirect, 16, 185}, {halo.ModeDirect, 64, 290}, {halo.ModeDirect, 256, 353},
	} {
		d := deepening{mesh: mesh, minRows: 1023, mode: c.mode, links: []linkTime{between(490 * time.Microsecond)}}
		seconds, _ := d.sweepSeconds(haloDepth{Rows: c.depth, Sweeps: 16})
		got := 2048 * 2048 / seconds / 1e9
		if math.Abs(got/c.measured-1) > 0.09 {
			t.Errorf("%s, depth %d: %.0f GLUP/s, measured %.0f", c.mode, c.depth, got, c.measured)
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
		{2048, solver.Float32, 2, 16, halo.ModeAuto, 490 * us, 256},   // 74, 125, 166 with 16, 64, 256
		{2048, solver.Float32, 2, 16, halo.ModeDirect, 490 * us, 256}, // 185, 290, 353
		{16384, solver.Float32, 4, 16, halo.ModeDirect, 490 * us, 16}, // 4,404 with 16, 3,644 with 64
		{16384, solver.Float32, 4, 16, halo.ModeAuto, 490 * us, 16},   // the bytes of a row count, whatever the depth
		{16384, solver.Float64, 2, 12, halo.ModeDirect, 490 * us, 12},
		{2048, solver.Float32, 16, 16, halo.ModeAuto, 490 * us, 64}, // of about 120 rows
		{2048, solver.Float64, 2, 12, halo.ModeAuto, 490 * us, 192}, // 12 times a power of two
		{64, solver.Float32, 2, 16, halo.ModeAuto, 490 * us, 16},    // of fewer than 32 rows
		{1024, solver.Float32, 2, 1, halo.ModeAuto, time.Second, 256},
	} {
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: c.dtype}
		d := deepening{mesh: mesh, minRows: solver.MinRows(mesh.Interior(), c.ranks), mode: c.mode,
			links: []linkTime{between(c.trip / 10), between(c.trip)}}
		got := d.choose(haloDepth{Rows: c.prefers, Sweeps: c.prefers})
		want := haloDepth{Rows: c.want, Sweeps: c.prefers, Why: "auto: " + between(c.trip).String()}
		if got != want {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
	if got, want := between(490*us).String(), "490µs from rank 0 to 1 over NATS, 1.24ms with 256 KiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A link without a measurement leaves the depth that the backends prefer.
func TestNoMeasurementNoDeeperHalo(t *testing.T) {
	mesh := solver.Mesh{NX: 2048, NY: 2048, DType: solver.Float32}
	d := deepening{mesh: mesh, minRows: 1023, links: []linkTime{between(time.Second),
		{From: 1, To: 2, Fault: "rank 2 did not answer rank 1 within 2s"}}}
	want := haloDepth{16, 16, "auto: preferred by the backends; rank 2 did not answer rank 1 within 2s"}
	if got := d.choose(haloDepth{Rows: 16, Sweeps: 16}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
