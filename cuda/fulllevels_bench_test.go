package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// lid is a field of 1 in row 0 and 0 elsewhere.
type lid struct{ mesh solver.Mesh }

func (l lid) Row(iy int, dst []byte) error {
	row := make([]float64, l.mesh.NX)
	_ = l.Values(iy, nil, row)
	_, err := binary.Encode(dst, binary.LittleEndian, row)
	return err
}

// Values implements multigrid.Initial.
func (lid) Values(iy int, _ []int, dst []float64) error {
	for i := range dst {
		dst[i] = 0
		if iy == 0 {
			dst[i] = 1
		}
	}
	return nil
}

// kept is the reducer of a single rank.
type kept struct{ c solver.Contribution }

func (k *kept) Post(_ context.Context, _ uint64, c solver.Contribution) error {
	k.c = c
	return nil
}

func (k *kept) Wait(context.Context, uint64) (solver.Contribution, error) { return k.c, nil }

// BenchmarkFullMultigrid times full multigrid with one cycle on the finest mesh and the norm after it, as a run of
// solver.start: full with solver.max_iterations: 1 does it, and its interpolation and restriction to and from the
// finest mesh. The bytes are those that they read and write at least.
func BenchmarkFullMultigrid(b *testing.B) {
	if noGPU != nil {
		b.Skipf("NOT RUN, no GPU: %v", noGPU)
	}
	for _, n := range []int{16384, 4096, 1024} {
		for _, source := range []bool{false, true} {
			timeFull(b, n, source)
		}
	}
}

func timeFull(b *testing.B, n int, source bool) {
	ctx, points := context.Background(), int64(n)*int64(n)
	v, err := openFlat(func(l multigrid.Layout) (*Levels, error) { return NewLevels(gpu, l, Options{}) }, n, source)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	field := lid{v.layout.Plan.Levels[0].Mesh}
	if err := v.Load(ctx, field); err != nil {
		b.Fatal(err)
	}
	layouts, err := multigrid.StagesOf(v.layout, [][]solver.Stripe{v.layout.Stripes}, 0, field,
		multigrid.AgglomeratedPoints)
	if err != nil {
		b.Fatal(err)
	}
	finest := multigrid.Grid{Device: v, Layout: v.layout}
	stages, err := multigrid.OpenStages(ctx, finest, layouts)
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprintf("n=%d/source=%t", n, source)
	v.time(b, name+"/interpolate", 10*points, func() error { return v.Interpolate(ctx, stages[0].Device) })
	if source {
		v.time(b, name+"/restrict", 10*points, func() error { return v.RestrictSource(ctx, stages[0].Device) })
	}
	v.time(b, name+"/run", 0, func() error {
		sums := solver.NewReductions(&kept{}, &solver.Watch{})
		it := multigrid.New(finest, sums, multigrid.Options{Stages: stages})
		_, err := solver.Drive(ctx, it, sums, solver.Options{MaxIterations: 1, Magnitude: v.layout.Magnitude})
		return err
	})
}
