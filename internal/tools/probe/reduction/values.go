package reduction

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync"

	"jacobi/solver"
)

// Type is the type of values.
type Type string

// The types. Integers are added modulo 2^32 and 2^64.
const (
	Int32   Type = "int32"
	Int64   Type = "int64"
	Float32 Type = "float32"
	Float64 Type = "float64"
)

// Types lists all types.
func Types() []Type { return []Type{Int32, Int64, Float32, Float64} }

// Size returns the bytes of a value.
func (t Type) Size() int {
	if t == Int32 || t == Float32 {
		return 4
	}
	return 8
}

// suffix returns the end of the names of the kernels.
func (t Type) suffix() string {
	return map[Type]string{Int32: "_i32", Int64: "_i64", Float32: "_f32", Float64: "_f64"}[t]
}

// float reports whether sums of the type round.
func (t Type) float() bool { return t == Float32 || t == Float64 }

// hashOf is hashOf of probe_fill.cu.
func hashOf(i uint64) uint64 {
	i = (i + 1) * 0x9E3779B97F4A7C15
	i = (i ^ i>>32) * 0xD6E8FEB86659FD93
	return i ^ i>>32
}

// fixed returns value i of the type as an integer: the value itself, or for floating point a multiple of 2^-53.
func (t Type) fixed(i uint64) uint64 {
	h := hashOf(i)
	switch t {
	case Int32:
		return h >> 32
	case Int64:
		return h
	case Float32:
		return h >> 40 << 29
	}
	return h >> 11
}

// sum is an exact sum of values of a type.
type sum struct{ lo, hi uint64 } // 128 bits: of integers, or of multiples of 2^-53

func (s sum) plus(o sum) sum {
	lo, carry := bits.Add64(s.lo, o.lo, 0)
	return sum{lo, s.hi + o.hi + carry}
}

// sumOf adds the first n values of a type on all cores.
func sumOf(t Type, n int) (total sum) {
	parts := make([]sum, min(runtime.GOMAXPROCS(0), max(1, n>>12)))
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() {
			var s sum
			for i := n * p / len(parts); i < n*(p+1)/len(parts); i++ {
				s = s.plus(sum{t.fixed(uint64(i)), 0})
			}
			parts[p] = s
		})
	}
	wg.Wait()
	for _, s := range parts {
		total = total.plus(s)
	}
	return total
}

// float returns the sum of floating-point values, rounded once.
func (s sum) float() float64 { return math.Ldexp(float64(s.hi), 11) + math.Ldexp(float64(s.lo), -53) }

// exact returns the sum of floating-point values in units of magnitude 0.
func (s sum) exact() (e solver.Sum) {
	const shift = solver.UnitBits - 53
	e.AddScaled(s.lo, shift)
	e.AddScaled(s.hi<<20, shift+44) // hi is far below 2^44, and shifts go up to 127
	return e
}

// maxError bounds the relative error of a sum of n values that are not negative: each of the additions in a row rounds
// by at most half a unit in the last place. A sum of partial sums has far fewer in a row than this bound allows.
func (t Type) maxError() float64 {
	if t == Float32 {
		return 1e-4
	}
	return 1e-12
}

// compare compares a value of the type, as it lies in memory, with the exact sum. It returns the relative error, and an
// error if the value is wrong: another integer, or more than most beyond rounding.
func (t Type) compare(got []byte, want sum, most float64) (float64, error) {
	var value float64
	switch t {
	case Int32:
		if v := binary.LittleEndian.Uint32(got); v != uint32(want.lo) {
			return 0, fmt.Errorf("WRONG: the sum is %d, not %d", int32(v), int32(uint32(want.lo)))
		}
		return 0, nil
	case Int64:
		if v := binary.LittleEndian.Uint64(got); v != want.lo {
			return 0, fmt.Errorf("WRONG: the sum is %d, not %d", int64(v), int64(want.lo))
		}
		return 0, nil
	case Float32:
		value = float64(math.Float32frombits(binary.LittleEndian.Uint32(got)))
	default:
		value = math.Float64frombits(binary.LittleEndian.Uint64(got))
	}
	off := math.Abs(value-want.float()) / want.float()
	if !(off <= most) {
		return off, fmt.Errorf("WRONG: the sum is %v, not %v", value, want.float())
	}
	return off, nil
}
