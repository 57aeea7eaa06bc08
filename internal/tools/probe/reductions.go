package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"

	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

// Numbers of values of the part reductions.
const (
	fewValues  = 1 << 22
	manyValues = 1 << 28
	cpuValues  = 1 << 25 // on the CPU, besides fewValues
)

// reductions measures the sum of an array within each GPU, over several GPUs, and on the CPU. The values follow from
// their index, so the CPU knows every sum exactly.
func reductions(ctx context.Context, m *Machine) (r Result, err error) {
	add := func(device, figures string, k kind, n int, rows []row) {
		r.showRows(fmt.Sprintf("%s, %d values of %s", device, n, k), figures, rows)
	}
	for i := range m.GPUs {
		for _, n := range []int{fewValues, manyValues} {
			for _, k := range kinds() {
				rows, err := addOnGPU(ctx, &m.GPUs[i], k, n)
				if err != nil {
					return r, err
				}
				index := m.GPUs[i].Index
				add(fmt.Sprintf("GPU %d", index), fmt.Sprintf("reductions.gpu%d.%s.%d", index, k, n), k, n, rows)
			}
		}
	}
	of := kind(m.DType)
	if len(m.GPUs) > 0 {
		var by *post
		if m.Dial != nil {
			conn, hangUp, err := m.Dial(ctx)
			if err != nil {
				return r, err
			}
			defer hangUp()
			by = &post{conn: conn, subject: m.Echo(m.Node) + ".sums"}
		} else {
			r.skip("sums over NATS: a run of one rank has no server")
		}
		rows, err := addOverGPUs(ctx, m.GPUs, of, manyValues, by)
		if err != nil {
			return r, err
		}
		add("over GPUs", "reductions.over", of, manyValues, rows)
	} else {
		r.skip("no GPU: %v; the CPU was measured", m.NoGPU)
	}
	for _, n := range []int{fewValues, cpuValues} {
		for _, k := range kinds() {
			if n == cpuValues && k != of {
				continue
			}
			rows, err := addOnCPU(ctx, k, n)
			if err != nil {
				return r, err
			}
			add("the CPU", fmt.Sprintf("reductions.cpu.%s.%d", k, n), k, n, rows)
		}
	}
	return r, nil
}

// addOnCPU measures sums in Go: serial, with four sums at a time, on all cores, and exact, on one core.
func addOnCPU(ctx context.Context, k kind, n int) ([]row, error) {
	switch k {
	case "int32":
		return addOnCPUOf[int32](ctx, k, n)
	case "int64":
		return addOnCPUOf[int64](ctx, k, n)
	case "float32":
		return addOnCPUOf[float32](ctx, k, n)
	}
	return addOnCPUOf[float64](ctx, k, n)
}

func addOnCPUOf[T number](ctx context.Context, k kind, n int) ([]row, error) {
	values, out := make([]T, n), make([]T, n)
	onCores(n, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			if v := k.fixed(uint64(i)); k.float() {
				values[i] = T(float64(v) * 0x1p-53)
			} else {
				values[i] = T(v)
			}
		}
	})
	copied, err := gpu.Fastest(ctx, wayTries, gpu.Wall(func() error {
		onCores(n, func(_, lo, hi int) { copy(out[lo:hi], values[lo:hi]) })
		return nil
	}))
	if err != nil {
		return nil, err
	}
	want := sumOf(k, n)
	plain := func(name string, add func([]T) T) way {
		var sum T
		return way{name, gpu.Wall(func() error { sum = add(values); return nil }), func() (float64, error) {
			bytes, err := binary.Append(nil, binary.LittleEndian, sum)
			if err != nil {
				return 0, err
			}
			return k.compare(bytes, want, n)
		}}
	}
	ways := []way{plain("serial", serial[T]), plain("unrolled", unrolled[T]), plain("all cores", byCores[T])}
	if k.float() {
		var sum solver.Sum
		ways = append(ways, way{"exact", gpu.Wall(func() error { sum = exactly(values); return nil }),
			func() (float64, error) { return compareExact(sum, want) }})
	}
	rows, err := measure(ctx, int64(n*k.size()), ways)
	if err != nil {
		return nil, fmt.Errorf("on the CPU, %d values of %s: %w", n, k, err)
	}
	return relate(rows, 2*float64(n*k.size())/copied.Seconds()), nil
}

// number is a Go type of values.
type number interface {
	int32 | int64 | float32 | float64
}

// serial adds values one after the other: each addition waits for the one before.
func serial[T number](values []T) (sum T) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// unrolled adds values to four sums, whose additions do not wait for each other.
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

// byCores adds a part of the values on each core.
func byCores[T number](values []T) T {
	parts := make([]T, runtime.GOMAXPROCS(0))
	onCores(len(values), func(core, lo, hi int) { parts[core] = unrolled(values[lo:hi]) })
	return serial(parts)
}

// exactly adds values as the norm of a run is added.
func exactly[T number](values []T) (sum solver.Sum) {
	for _, v := range values {
		sum.Add(float64(v), 0)
	}
	return sum
}
