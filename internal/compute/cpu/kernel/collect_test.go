package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"jacobi/solver"
)

// Every kernel of this machine collects the same exact sum as the portable one, of small and large groups and of groups
// that solver.Sum refuses, and packs rows as Span describes.
func TestSameSumsAndOrder(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			f32, err := Find(name, solver.Float32)
			if err != nil {
				t.Fatal(err)
			}
			f64, err := Find(name, solver.Float64)
			if err != nil {
				t.Fatal(err)
			}
			sameSums[float32](t, f32, solver.Float32)
			sameSums[float64](t, f64, solver.Float64)
			sameOrder[float32](t, f32)
			sameOrder[float64](t, f64)
		})
	}
}

// Limbs that hold as much as they may lose nothing when they are moved into the sum.
func TestFullLimbs(t *testing.T) {
	c := NewCollector(3, solver.Float32)
	var want solver.Sum
	for i := range c.Limbs {
		for lane := range c.Limbs[i] {
			c.Limbs[i][lane] = maxCalls << 52
			want.AddScaled(maxCalls<<52, 48*i)
		}
	}
	if got := c.Total(); got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
}

func sameSums[F float](t *testing.T, k Kernel, dtype solver.DType) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	const magnitude, rows = 3, 8
	for _, test := range []struct {
		exponents int // of the groups, below that of the magnitude's square
		last      float64
	}{{20, 1}, {200, 1}, {140, 1}, {20, math.Inf(1)}, {20, math.NaN()}, {20, 0x1p20}} {
		want, got := NewCollector(magnitude, dtype), NewCollector(magnitude, dtype)
		for range 300 {
			acc := aligned[F](4 * collectGroups)
			n := k.Lanes * (1 + random.IntN(len(acc)/k.Lanes))
			for i := range n {
				v := math.Ldexp(random.Float64(), 2*magnitude-random.IntN(test.exponents))
				acc[i] = F(v) + F(bias(dtype, rows))
			}
			acc[random.IntN(n)] = F(test.last)
			k.Collect(&got, pointer(acc), n, rows)
			want.add(pointer(acc), n, bias(dtype, rows))
		}
		if got.Total() != want.Total() {
			t.Errorf("%d exponents, last %g: sum %v, want %v", test.exponents, test.last, got.Total(), want.Total())
		}
	}
}

func sameOrder[F float](t *testing.T, k Kernel) {
	t.Helper()
	if k.Pack == nil {
		return
	}
	const blocks = 3
	n := 4 * k.Lanes * blocks
	dense, packed, back := aligned[F](n), aligned[F](n), aligned[F](n)
	for i := range dense {
		dense[i] = F(i + 1)
	}
	k.Pack(pointer(packed), pointer(dense), blocks)
	for i, v := range dense {
		if got := packed[index(i, k.Lanes)]; got != v {
			t.Errorf("Pack, %d bytes: column %d is that of %g", unsafe.Sizeof(v), i, got-1)
		}
	}
	k.Unpack(pointer(back), pointer(packed), blocks)
	for i, v := range back {
		if v != dense[i] {
			t.Errorf("Unpack, %d bytes: column %d is that of %g", unsafe.Sizeof(v), i, v-1)
		}
	}
}

// index returns the place of a column in a row of blocks.
func index(column, lanes int) int {
	q := column / 4
	return q/lanes*4*lanes + column%4*lanes + q%lanes
}

// aligned returns n zeros at a multiple of MaxVector.
func aligned[V float | byte](n int) []V {
	v := make([]V, n+MaxVector)
	for uintptr(unsafe.Pointer(unsafe.SliceData(v)))%MaxVector != 0 {
		v = v[1:]
	}
	return v[:n]
}

func pointer[V any](v []V) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(v)) }
