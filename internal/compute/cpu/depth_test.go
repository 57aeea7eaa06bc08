package cpu

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jacobi/solver"
)

func TestPreferredDepth(t *testing.T) {
	for rows, want := range map[int]int{1: 1, 8: 1, 31: 1, 32: 2, 128: 8, 255: 15, 256: 16, 16382: 16} {
		if got := PreferredDepth(solver.Mesh{NX: 100, NY: 20000, DType: solver.Float32}, rows); got != want {
			t.Errorf("PreferredDepth with %d rows = %d, want %d", rows, got, want)
		}
	}
}

// Copies of periodic columns are made between sweeps.
func TestPeriodicColumnsHaveOneSweepAPass(t *testing.T) {
	mesh := solver.Mesh{NX: 100, NY: 2000, DType: solver.Float32,
		Walls: solver.Walls{Left: solver.Periodic, Right: solver.Periodic}}
	if depth, sweeps := PreferredDepth(mesh, 1998), MaxSweeps(mesh); depth != 1 || sweeps != 1 {
		t.Errorf("preferred depth %d, at most %d sweeps, want 1 and 1", depth, sweeps)
	}
}

func TestSecondLevelCache(t *testing.T) {
	dir := t.TempDir()
	if got := secondLevelCache(dir); got != defaultCache {
		t.Errorf("without any description: %d bytes, want %d", got, defaultCache)
	}
	for name, files := range map[string][2]string{"index0": {"1\n", "48K\n"}, "index2": {"2\n", "2048K\n"},
		"index3": {"3\n", "491520K\n"}} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, file := range []string{"level", "size"} {
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(files[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := secondLevelCache(dir); got != 2<<20 {
		t.Errorf("%d bytes, want %d", got, 2<<20)
	}
}

// A rate comes from a stripe that is as small as one can be, that is cut, that lies at either wall or at none, and that
// has an operator. A run that has ended gets no rate.
func TestSweepRate(t *testing.T) {
	large := solver.Mesh{NX: 4096, NY: 4096, DType: solver.Float32}
	small := solver.Mesh{NX: 3, NY: 3, DType: solver.Float64}
	wide := solver.Mesh{NX: 1 << 17, NY: 64, DType: solver.Float64}
	for name, l := range map[string]solver.Layout{
		"small": {Mesh: small, Stripe: small.Interior(), Depth: 1},
		"upper": {Mesh: large, Stripe: solver.Stripe{Lo: 1, Hi: 2048}, Depth: 16, Neighbour: [2]bool{false, true}},
		"lower": {Mesh: large, Stripe: solver.Stripe{Lo: 2048, Hi: 4095}, Depth: 16, Neighbour: [2]bool{true, false}},
		"deep":  {Mesh: wide, Stripe: solver.Stripe{Lo: 16, Hi: 40}, Depth: 8, Neighbour: [2]bool{true, true}},
		"operator": {Mesh: large, Stripe: solver.Stripe{Lo: 1, Hi: 2048}, Depth: 4, Neighbour: [2]bool{false, true},
			Operator: solver.Operator{Scale: 0.5, Blend: 0.5, Values: wavy{large}, Fixed: wavy{large}}},
	} {
		t.Run(name, func(t *testing.T) {
			l.MaxSweeps = l.Depth
			if rate, err := SweepRate(t.Context(), l, Options{Threads: 2}); err != nil || rate <= 0 {
				t.Errorf("%g points a second, %v", rate, err)
			}
			if rate, err := MeanRate(t.Context(), l, Options{Threads: 2}, time.Microsecond); err != nil ||
				rate <= 0 {
				t.Errorf("%g points a second over some time, %v", rate, err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run is over")
	cancel(cause)
	l := solver.Layout{Mesh: large, Stripe: large.Interior(), Depth: 1, MaxSweeps: 1}
	if rate, err := SweepRate(ctx, l, Options{}); !errors.Is(err, cause) {
		t.Errorf("%g points a second, %v, want %v", rate, err, cause)
	}
	if rate, err := MeanRate(ctx, l, Options{}, time.Hour); !errors.Is(err, cause) || rate != 0 {
		t.Errorf("%g points a second over some time, %v, want %v", rate, err, cause)
	}
}

// The copy with stores that bypass the caches copies its pages and writes nothing else.
func TestStreamCopy(t *testing.T) {
	stream := streamCopy()
	if stream == nil {
		t.Skipf("NOT RUN: %s: this processor has no stores past the caches that we use", t.Name())
	}
	var fields [2]memory
	for i := range fields {
		var err error
		if fields[i], err = newMemory(5 * page); err != nil {
			t.Fatal(err)
		}
		defer fields[i].free()
	}
	for i := range fields[1] {
		fields[1][i] = byte(i*7 + i>>8)
	}
	stream(fields[0][page:page], fields[1][page:page])
	stream(fields[0][page:4*page], fields[1][page:4*page])
	want := make([]byte, 5*page)
	copy(want[page:4*page], fields[1][page:4*page])
	if !bytes.Equal(fields[0], want) {
		t.Error("the copy of the middle three of five pages is something else")
	}
}

func TestCopyRate(t *testing.T) {
	for _, c := range []struct{ bytes, threads int }{{1, 3}, {5 * page, 3}, {1 << 20, 2}} {
		rate, err := CopyRate(t.Context(), c.bytes, c.threads)
		if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
			t.Errorf("%d bytes, %d threads: %v, %v", c.bytes, c.threads, rate, err)
		}
	}
	if _, err := CopyRate(t.Context(), 0, 1); err == nil ||
		err.Error() != "copy rate of 0 bytes with 1 threads: both must be at least 1" {
		t.Errorf("0 bytes: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := CopyRate(ctx, 1, 1); !errors.Is(err, cause) {
		t.Errorf("after the end of the context: %v", err)
	}
}
