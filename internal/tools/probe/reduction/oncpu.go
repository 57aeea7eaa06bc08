package reduction

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"

	"jacobi/internal/tools/probe/timing"
	"jacobi/solver"
)

// number is a Go type of values.
type number interface {
	int32 | int64 | float32 | float64
}

// OnCPU measures sums in Go: serial, with four sums at a time, on all cores, and exact, on one core.
func OnCPU(ctx context.Context, kind Type, n int) ([]Step, error) {
	switch kind {
	case Int32:
		return onCPU(ctx, kind, n, func(i int) int32 { return int32(uint32(kind.fixed(uint64(i)))) })
	case Int64:
		return onCPU(ctx, kind, n, func(i int) int64 { return int64(kind.fixed(uint64(i))) })
	case Float32:
		return onCPU(ctx, kind, n, func(i int) float32 { return float32(kind.fixed(uint64(i))>>29) * 0x1p-24 })
	}
	return onCPU(ctx, kind, n, func(i int) float64 { return float64(kind.fixed(uint64(i))) * 0x1p-53 })
}

func onCPU[T number](ctx context.Context, kind Type, n int, value func(i int) T) (steps []Step, err error) {
	values, out := make([]T, n), make([]T, n)
	overCores(n, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			values[i] = value(i)
		}
	})
	want, bytes := sumOf(kind, n), float64(n*kind.Size())
	copied, err := timing.Fastest(ctx, tries, func() {
		overCores(n, func(_, lo, hi int) { copy(out[lo:hi], values[lo:hi]) })
	})
	if err != nil {
		return nil, err
	}
	var sum T
	var whole solver.Sum
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"serial", func() { sum = serial(values) }},
		{"unrolled", func() { sum = unrolled(values) }},
		{"all cores", func() { sum = onAllCores(values) }},
		{exactOnCPU, func() { whole = exactly(values) }},
	} {
		if way.name == exactOnCPU && !kind.float() {
			continue
		}
		took, err := timing.Fastest(ctx, tries, way.do)
		if err != nil {
			return nil, err
		}
		var off float64
		if way.name != exactOnCPU {
			// In a row, n additions round by 2^-24 or 2^-53 each.
			off, err = kind.compare(bytesOf(sum), want, float64(n)*kind.maxError()/1e3)
		} else if whole != want.exact() {
			err = fmt.Errorf("WRONG: the exact sum is %v, not %v", whole, want.exact())
		}
		if err != nil {
			return nil, fmt.Errorf("%s on the CPU, %d values of %s: %w", way.name, n, kind, err)
		}
		steps = append(steps, Step{Name: way.name, Type: kind, Values: n, Seconds: took, Rate: bytes / took,
			OfCopy: bytes / took / (2 * bytes / copied), Error: off})
	}
	relate(steps)
	return steps, nil
}

const exactOnCPU = "exact"

// serial adds the values one after the other: each addition waits for the one before.
func serial[T number](values []T) (sum T) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// unrolled adds the values to four sums, whose additions do not wait for each other.
func unrolled[T number](values []T) T {
	var a, b, c, d T
	for len(values) >= 4 {
		a += values[0]
		b += values[1]
		c += values[2]
		d += values[3]
		values = values[4:]
	}
	return a + b + c + d + serial(values)
}

// onAllCores adds a part of the values on each core.
func onAllCores[T number](values []T) T {
	parts := make([]T, runtime.GOMAXPROCS(0))
	overCores(len(values), func(c, lo, hi int) { parts[c] = unrolled(values[lo:hi]) })
	return serial(parts)
}

// exactly adds the values as the norm of a run is added.
func exactly[T number](values []T) (sum solver.Sum) {
	for _, v := range values {
		sum.Add(float64(v), 0)
	}
	return sum
}

// overCores divides [0, n) among all cores.
func overCores(n int, do func(core, lo, hi int)) {
	cores := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for c := range cores {
		wg.Go(func() { do(c, n*c/cores, n*(c+1)/cores) })
	}
	wg.Wait()
}

// bytesOf returns a value as it lies in memory.
func bytesOf[T number](v T) []byte {
	switch v := any(v).(type) {
	case float32:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	case float64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v))
	case int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(v))
	}
	panic("unreachable")
}
