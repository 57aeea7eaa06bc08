package probe

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"

	"jacobi/solver"
)

// kind is a type of values that are added. Integers are added modulo 2^32 and 2^64.
type kind string

func kinds() []kind { return []kind{"int32", "int64", "float32", "float64"} }

// size returns the bytes of a value.
func (k kind) size() int {
	if strings.HasSuffix(string(k), "32") {
		return 4
	}
	return 8
}

// kernel returns the name of a kernel for the kind, which ends in _i32 or so.
func (k kind) kernel(name string) string { return name + "_" + string(k[:1]+k[len(k)-2:]) }

// float reports whether sums of the kind round.
func (k kind) float() bool { return k == "float32" || k == "float64" }

// hashOf is hashOf of probe_fill.cu.
func hashOf(i uint64) uint64 {
	i = (i + 1) * 0x9E3779B97F4A7C15
	i = (i ^ i>>32) * 0xD6E8FEB86659FD93
	return i ^ i>>32
}

// fixed returns value i of the kind as an integer: the value itself, or for floating point a multiple of 2^-53.
func (k kind) fixed(i uint64) uint64 {
	h := hashOf(i)
	switch k {
	case "int32":
		return h >> 32
	case "float32":
		return h >> 40 << 29
	case "float64":
		return h >> 11
	}
	return h
}

// sumOf adds the first n < 2^32 values of a kind on all cores: integers in units of 1, floating-point values in those
// of magnitude 0.
func sumOf(k kind, n int) (total solver.Sum) {
	parts := make([][2]uint64, runtime.GOMAXPROCS(0)) // the lower and the upper 32 bits
	onCores(n, func(core, lo, hi int) {
		var low, high uint64
		for i := lo; i < hi; i++ {
			v := k.fixed(uint64(i))
			low += v & math.MaxUint32
			high += v >> 32
		}
		parts[core] = [2]uint64{low, high}
	})
	unit := 0
	if k.float() {
		unit = solver.UnitBits - 53
	}
	for _, s := range parts {
		total.AddScaled(s[0], unit)
		total.AddScaled(s[1], unit+32)
	}
	return total
}

// onCores divides [0, n) among all cores.
func onCores(n int, do func(core, lo, hi int)) {
	cores := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for c := range cores {
		wg.Go(func() { do(c, n*c/cores, n*(c+1)/cores) })
	}
	wg.Wait()
}

// number returns a floating-point value of the kind as it lies in memory.
func (k kind) number(b []byte) float64 {
	if k.size() == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// compare compares a sum, as it lies in memory, with the exact one. It returns the relative error, and an error if the
// sum is wrong: another integer, or farther off than compareNumber allows.
func (k kind) compare(got []byte, want solver.Sum, inARow int) (float64, error) {
	if k.float() {
		return k.compareNumber(k.number(got), want, inARow)
	}
	v, mask := uint64(0), uint64(math.MaxUint64)>>(64-8*k.size())
	for i := range k.size() {
		v |= uint64(got[i]) << (8 * i)
	}
	if v != want.Limbs[0]&mask {
		return 0, fmt.Errorf("the sum is %d, not %d", v, want.Limbs[0]&mask)
	}
	return 0, nil
}

// compareNumber compares a sum of floating-point values with the exact one. Where values are added in a row, each
// addition may round by half a unit in the last place; sums of partial sums have fewer than a thousand in a row.
func (k kind) compareNumber(got float64, want solver.Sum, inARow int) (float64, error) {
	most := map[int]float64{4: 1e-7, 8: 1e-15}[k.size()] * float64(max(1000, inARow))
	off := math.Abs(got-want.Float(0)) / want.Float(0)
	if !(off <= most) {
		return off, fmt.Errorf("the sum is %v, not %v", got, want.Float(0))
	}
	return off, nil
}

// compareExact compares an exact sum with what it must be, bit by bit.
func compareExact(got solver.Sum, want solver.Sum) (float64, error) {
	if got != want {
		return 0, fmt.Errorf("the exact sum is %v, not %v", got, want)
	}
	return 0, nil
}
