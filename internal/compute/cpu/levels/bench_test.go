package levels

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// ones yields the field 0 and a source that is nowhere 0.
type ones struct{ mesh solver.Mesh }

func (ones) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}

func (o ones) ValueRow(_ int, _ solver.Value, dst []byte) error {
	for x := range o.mesh.NX {
		copy(dst[8*x:], "\x00\x00\x00\x00\x00\x00\xf0\x3e") // 2^-16
	}
	return nil
}

// BenchmarkCycle does cycles on one thread and reports the processor time of each, which does not count that of other
// processes.
func BenchmarkCycle(b *testing.B) {
	for _, name := range kernel.Names() {
		for _, size := range [][2]int{{1023, 1023}, {4095, 4095}, {16383, 1023}, {9, 10000}, {257, 257}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size[0], size[1]), func(b *testing.B) {
				benchmarkCycle(b, name, size[0], size[1])
			})
		}
	}
}

// even yields the weights and couplings of the Laplace equation.
type even struct{ ones }

func (e even) ValueRow(y int, k solver.Value, dst []byte) error {
	if k == solver.Source {
		return e.ones.ValueRow(y, k, dst)
	}
	bits := "\x00\x00\x00\x00\x00\x00\xd0\x3f" // 2^-2
	if k == solver.Diagonal {
		bits = "\x00\x00\x00\x00\x00\x00\xf0\x3f" // 1
	}
	for x := range e.mesh.NX {
		copy(dst[8*x:], bits)
	}
	return nil
}

// BenchmarkWeighted does cycles of a weighted operator with conjugate gradients.
func BenchmarkWeighted(b *testing.B) {
	for _, name := range kernel.Names() {
		b.Run(name, func(b *testing.B) {
			mesh := solver.Mesh{NX: 2047, NY: 2047, DType: solver.Float64}
			benchmarkOperator(b, name, mesh, solver.Operator{Weighted: true, Ratio: 1, Values: even{ones{mesh}}})
		})
	}
}

// BenchmarkSetUp sets up the levels of a weighted operator.
func BenchmarkSetUp(b *testing.B) {
	mesh := solver.Mesh{NX: 2047, NY: 2047, DType: solver.Float64}
	l := layoutOf(b, mesh, solver.Operator{Weighted: true, Ratio: 1, Values: even{ones{mesh}}})
	d, err := New(l, 1, "")
	if err != nil {
		b.Fatal(err)
	}
	ctx, g := context.Background(), multigrid.Grid{Device: d, Layout: l}
	var total time.Duration
	for b.Loop() {
		b.StopTimer()
		if err := d.Load(ctx, ones{mesh}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		begin := cpuTime(b)
		if err := g.SetUp(ctx); err != nil {
			b.Fatal(err)
		}
		total += cpuTime(b) - begin
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N)/1000, "cpu-ms/op")
}

// layoutOf returns the layout of a rank that is alone.
func layoutOf(b *testing.B, mesh solver.Mesh, op solver.Operator) multigrid.Layout {
	p, err := multigrid.NewPlan(mesh, op)
	if err != nil {
		b.Fatal(err)
	}
	stripes, agglomerated := p.Divide([]solver.Stripe{mesh.Interior()}, multigrid.AgglomeratedPoints)
	l := p.LayoutOf(stripes, agglomerated, 0)
	l.Values = op.Values
	return l
}

func benchmarkCycle(b *testing.B, name string, nx, ny int) {
	mesh := solver.Mesh{NX: nx, NY: ny, DType: solver.Float64}
	benchmarkOperator(b, name, mesh, solver.Operator{Scale: 0.5, Blend: 0.5, Values: ones{mesh}})
}

// benchmarkOperator does cycles, with conjugate gradients if the operator is weighted.
func benchmarkOperator(b *testing.B, name string, mesh solver.Mesh, op solver.Operator) {
	l := layoutOf(b, mesh, op)
	d, err := New(l, 1, name)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if err := d.Load(ctx, ones{mesh}); err != nil {
		b.Fatal(err)
	}
	if err := (&multigrid.Grid{Device: d, Layout: l}).SetUp(ctx); err != nil {
		b.Fatal(err)
	}
	s := NewCG(d)
	if err := s.Load(ctx, nil); err != nil {
		b.Fatal(err)
	}
	begin := cpuTime(b)
	for b.Loop() {
		if err := d.Down(ctx, 0); err != nil {
			b.Fatal(err)
		}
		if err := d.Agglomerate(ctx); err != nil {
			b.Fatal(err)
		}
		if op.Weighted {
			if err := s.Keep(ctx); err != nil {
				b.Fatal(err)
			}
		}
		if err := d.Up(ctx, 0); err != nil {
			b.Fatal(err)
		}
		if !op.Weighted {
			continue
		}
		if _, err := s.Products(ctx); err != nil {
			b.Fatal(err)
		}
		if err := s.Step(ctx, 1.1, 0.1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
