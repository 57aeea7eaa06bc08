package cpu

import (
	"fmt"
	"testing"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
	"jacobi/solver/backendtest"
)

// kinds opens a backend with each kernel of this machine. The number of threads, the width of tiles and whether ranks
// share cores vary from case to case.
func kinds() (all []backendtest.Kind) {
	for _, name := range kernel.Names() {
		n := 0
		all = append(all, backendtest.Kind{Name: name, Open: func(l solver.Layout) (solver.Backend, error) {
			n++
			return New(l, Options{Threads: 1 + n%3, Kernel: name, Cache: 1 << (10 + n%7),
				ThreadsPerCore: 1 + n/3%2})
		}})
	}
	return all
}

func TestConformance(t *testing.T) { backendtest.Run(t, kinds()...) }
func TestOperators(t *testing.T)   { backendtest.RunOperators(t, kinds()...) }
func TestWeighted(t *testing.T)    { backendtest.RunWeighted(t, kinds()...) }
func TestNorms(t *testing.T)       { backendtest.RunNorms(t, kinds()...) }

// rows is values of 0 and no fixed points.
type rows struct{}

func (rows) ValueRow(_ int, _ solver.Value, dst []byte) error { clear(dst); return nil }
func (rows) FixedRow(_ int, dst []bool) error                 { clear(dst); return nil }

// MemoryBytes states what New allocates, with what each part of an operator adds.
func TestMemoryBytes(t *testing.T) {
	mesh := solver.Mesh{NX: 2000, NY: 500, DType: solver.Float32, Walls: solver.Walls{Right: solver.Neumann}}
	l := solver.Layout{Mesh: mesh, Stripe: solver.Stripe{Lo: 8, Hi: 256}, Depth: 4, Neighbour: [2]bool{true, true}}
	o := Options{Threads: 2, Kernel: "portable", Cache: 1 << 18}
	const stride, masks, rowsHeld = 33 * 256, 2048, 248 + 2*4 // 2,000 columns and one beyond the wall; a byte a mask
	const termsStride = 127 * 256                             // 8,000 values and one
	var plain int64
	for _, test := range []struct {
		operator solver.Operator
		more     int64
	}{
		{solver.Operator{}, 0},
		{solver.Operator{Fixed: rows{}}, (rowsHeld - 1) * masks},
		{solver.Operator{Scale: 0.5, Blend: 0.5}, stride + 128},
		{solver.Operator{Scale: 0.5, Blend: 0.5, Values: rows{}, Fixed: rows{}}, rowsHeld*(stride+masks) - masks + 128},
		{solver.Operator{Weighted: true, Values: rows{}}, rowsHeld*(stride+termsStride) + 2*128},
	} {
		l.Operator = test.operator
		need, err := MemoryBytes(l, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(l, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Limits().Bytes; got != need {
			t.Errorf("%+v: New allocates %d bytes, MemoryBytes says %d", test.operator, got, need)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		_, scratch := newPlans(l, b.columns, o.Cache)
		if need -= 2 * int64(scratch); plain == 0 {
			plain = need
		}
		if need-plain != test.more {
			t.Errorf("%+v: %d bytes more than the plain average, want %d", test.operator, need-plain, test.more)
		}
	}
}

// TestThreads runs some cases with more threads than there is work for.
func TestThreads(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 7} {
		for _, periodic := range []bool{false, true} {
			for _, c := range []backendtest.Case{
				{Mesh: solver.Mesh{NX: 2500, NY: 70, DType: solver.Float32, Walls: solver.WrapRows(periodic)}, Ranks: 1,
					Depth:  6,
					Passes: 1},
				{Mesh: solver.Mesh{NX: 90, NY: 120, DType: solver.Float64, Walls: solver.WrapRows(periodic)}, Ranks: 2,
					Depth:  4,
					Sweeps: 3, Passes: 1},
			} {
				t.Run(fmt.Sprintf("%d threads %v", threads, c), func(t *testing.T) {
					backendtest.RunCase(t, c, backendtest.Kind{Name: "cpu", Open: func(l solver.Layout) (solver.Backend,
						error) {
						return New(l, Options{Threads: threads})
					}})
				})
			}
		}
	}
}

// Workers write to themselves all the time, so no two share a line of the cache.
func TestWorkersLieApart(t *testing.T) {
	mesh := solver.Mesh{NX: 64, NY: 64, DType: solver.Float32}
	l := solver.Layout{Mesh: mesh, Stripe: mesh.Interior(), Depth: 1}
	b, err := New(l, Options{Threads: 8, Kernel: "portable"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	lines := func(w *worker) (first, last uintptr) {
		at := uintptr(unsafe.Pointer(w))
		return at / cacheLine, (at + unsafe.Offsetof(w.normed) + unsafe.Sizeof(w.normed) - 1) / cacheLine
	}
	for i, v := range b.pool.workers {
		for j, w := range b.pool.workers[:i] {
			first, last := lines(v)
			if from, to := lines(w); from <= last && first <= to {
				t.Errorf("workers %d and %d share a line", j, i)
			}
		}
	}
}
