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
				benchmarkCycle(b, name, size[0], size[1], false)
			})
		}
	}
}

// BenchmarkAccelerated does the same with conjugate gradients.
func BenchmarkAccelerated(b *testing.B) {
	for _, name := range kernel.Names() {
		for _, size := range [][2]int{{1023, 1023}, {4095, 4095}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size[0], size[1]), func(b *testing.B) {
				benchmarkCycle(b, name, size[0], size[1], true)
			})
		}
	}
}

func benchmarkCycle(b *testing.B, name string, nx, ny int, accelerated bool) {
	mesh := solver.Mesh{NX: nx, NY: ny, DType: solver.Float64}
	p, err := multigrid.NewPlan(mesh, solver.Operator{})
	if err != nil {
		b.Fatal(err)
	}
	stripes, agglomerated := p.Divide([]solver.Stripe{mesh.Interior()}, multigrid.AgglomeratedPoints)
	l := p.LayoutOf(stripes, agglomerated, 0)
	l.Values = ones{mesh}
	d, err := New(l, 1, name)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if err := d.Load(ctx, ones{mesh}); err != nil {
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
		if accelerated {
			if err := s.Keep(ctx); err != nil {
				b.Fatal(err)
			}
		}
		if err := d.Up(ctx, 0); err != nil {
			b.Fatal(err)
		}
		if !accelerated {
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
