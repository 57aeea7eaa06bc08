package cuda

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// flat is a field, or a source, of zeros.
type flat struct{}

func (flat) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}

func (flat) ValueRow(_ int, _ solver.Value, dst []byte) error {
	clear(dst)
	return nil
}

// opener opens levels.
type opener func(l multigrid.Layout) (*Levels, error)

// openFlat opens the levels of an n x n mesh.
func openFlat(open opener, n int, source bool) (*Levels, error) {
	op := solver.Operator{Scale: 0.5, Blend: 0.5}
	p, err := multigrid.NewPlan(solver.Mesh{NX: n, NY: n, DType: solver.Float64}, op)
	if err != nil {
		return nil, err
	}
	stripes, agglomerated := p.Divide([]solver.Stripe{p.Levels[0].Mesh.Interior()}, multigrid.AgglomeratedPoints)
	l := p.LayoutOf(stripes, agglomerated, 0)
	if source {
		l.Values = flat{}
	}
	v, err := open(l)
	if err != nil {
		return nil, err
	}
	return v, v.Load(context.Background(), flat{})
}

// BenchmarkLevels times each part of a cycle, and cycles. The bytes are those that the part reads and writes at least.
func BenchmarkLevels(b *testing.B) {
	if noGPU != nil {
		b.Skipf("NOT RUN, no GPU: %v", noGPU)
	}
	for _, n := range []int{16384, 4096, 2048, 1024} {
		timeLevels(b, n, func(l multigrid.Layout) (*Levels, error) { return NewLevels(gpu, l, Options{}) })
	}
}

// BenchmarkLevelVariants checks and times the kernels of other shapes that bench/multigrid.sh has compiled into the
// directory $LEVEL_VARIANTS.
func BenchmarkLevelVariants(b *testing.B) {
	images, err := filepath.Glob(filepath.Join(os.Getenv("LEVEL_VARIANTS"), "*.cubin"))
	if noGPU != nil || err != nil || len(images) == 0 {
		b.Skipf("NOT RUN: no GPU, or no variants in $LEVEL_VARIANTS: %v", noGPU)
	}
	for _, file := range images {
		image, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		shapes, err := readShapes(strings.TrimSuffix(file, ".cubin") + ".shapes")
		if err != nil {
			b.Fatal(err)
		}
		open := func(l multigrid.Layout) (*Levels, error) {
			return newLevels(gpu, l, Options{}, code{image, image}, shapes)
		}
		b.Run(filepath.Base(file), func(b *testing.B) {
			for _, s := range shapes {
				b.Logf("%s: %d columns, %d ahead, %d warps, %d blocks", s.name, s.columns, s.ahead, s.warps, s.perSM)
			}
			for _, c := range wide {
				if err := leveltest.Check(b.Context(), c, func(l multigrid.Layout) (multigrid.Device, error) {
					return open(l)
				}); err != nil {
					b.Fatalf("%v: %v", c, err)
				}
			}
			timeLevels(b, 16384, open)
		})
	}
}

// readShapes returns smoothShapes with the numbers in a file of lines "DOWN_F64 4,2,4,2".
func readShapes(file string) ([]smoothShape, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	shapes := slices.Clone(smoothShapes)
	for line := range strings.Lines(string(text)) {
		name, numbers, _ := strings.Cut(strings.TrimSpace(line), " ")
		i := slices.IndexFunc(shapes, func(s smoothShape) bool { return s.name == strings.ToLower(name) })
		if i < 0 {
			return nil, fmt.Errorf("%s: no kernel %q", file, name)
		}
		s := &shapes[i]
		if _, err := fmt.Sscanf(numbers, "%d,%d,%d,%d", &s.columns, &s.ahead, &s.warps, &s.perSM); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
	}
	return shapes, nil
}

// timeLevels times the levels of an n x n mesh.
func timeLevels(b *testing.B, n int, open opener) {
	for _, source := range []bool{false, true} {
		name := fmt.Sprintf("n=%d/source=%t", n, source)
		v, err := openFlat(open, n, source)
		if err != nil {
			b.Fatal(err)
		}
		for i, l := range v.levels[:len(v.levels)-1] {
			v.timeLevel(b, fmt.Sprintf("%s/level%d", name, i), l, v.levels[i+1])
		}
		v.time(b, name+"/tail", 0, func() error { return v.tail.launch(v.stream) })
		v.time(b, name+"/cycle", 0, func() error { return v.cycle(context.Background()) })
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// timeLevel times all kernels that can do a level.
func (v *Levels) timeLevel(b *testing.B, name string, l, next *level) {
	points := int64(l.Mesh.NX) * int64(l.Mesh.NY)
	down, up := 9*points, 13*points
	switch {
	case l.Mesh.DType == solver.Float64 && l.hasB:
		down, up = 25*points, 25*points
	case l.Mesh.DType == solver.Float64:
		down, up = 17*points, 17*points
	}
	tables, err := v.upload(l, next)
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range v.kernels {
		if k.size != l.Mesh.DType.Size() || k.source != l.hasB || k.rows > 0 && points > 1<<24 {
			continue
		}
		s, err := v.smoothingWith(l, next, tables, k)
		if err != nil {
			b.Fatal(err)
		}
		bytes := down
		if k.up {
			bytes = up
		}
		v.time(b, name+"/"+k.name, bytes, func() error { return s.launch(v.stream) })
	}
}

// cycle puts a cycle of a single rank into the stream.
func (v *Levels) cycle(ctx context.Context) error {
	for l := range v.layout.Agglomerated {
		if err := v.Down(ctx, l); err != nil {
			return err
		}
	}
	if err := v.Agglomerate(ctx); err != nil {
		return err
	}
	for l := v.layout.Agglomerated - 1; l >= 0; l-- {
		if err := v.Up(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// time runs a benchmark of work that f puts into the stream.
func (v *Levels) time(b *testing.B, name string, bytes int64, f func() error) {
	b.Run(name, func(b *testing.B) {
		if bytes > 0 {
			b.SetBytes(bytes)
		}
		for range 2 {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		if err := v.stream.Synchronize(); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for range b.N {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "host-ns/op") // until all is launched
		if err := v.stream.Synchronize(); err != nil {
			b.Fatal(err)
		}
	})
}
