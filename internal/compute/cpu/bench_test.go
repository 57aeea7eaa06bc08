package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// wavy is an initial field, a source and fixed points, none of whose values is tiny. Fixed points are one in 64.
type wavy struct{ mesh solver.Mesh }

func (w wavy) Row(iy int, dst []byte) error {
	for x := range w.mesh.NX {
		v := math.Sin(float64(x*7+iy*13)) / 4
		put(w.mesh.DType, dst, x, v)
	}
	return nil
}

func put(t solver.DType, dst []byte, x int, v float64) {
	if t == solver.Float32 {
		binary.LittleEndian.PutUint32(dst[4*x:], math.Float32bits(float32(v)))
	} else {
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
	}
}

func (w wavy) ValueRow(iy int, _ solver.Value, dst []byte) error { return w.Row(iy+1, dst) }

// weights are those of a smooth coefficient, and a source.
type weights struct{ wavy }

func (w weights) ValueRow(iy int, k solver.Value, dst []byte) error {
	for x := range w.mesh.NX {
		v := 0.24 + math.Sin(float64(x)/100+float64(iy)/70+float64(k))/100
		if k == solver.Source {
			v /= 64
		}
		put(w.mesh.DType, dst, x, v)
	}
	return nil
}

// free is weights without a source.
type free struct{ weights }

func (f free) ValueRow(iy int, k solver.Value, dst []byte) error {
	if k == solver.Source {
		clear(dst)
		return nil
	}
	return f.weights.ValueRow(iy, k, dst)
}

// layers are weights that are the same in all rows.
type layers struct{ wavy }

func (l layers) ValueRow(_ int, k solver.Value, dst []byte) error {
	return weights(l).ValueRow(0, k, dst)
}

func (w wavy) FixedRow(iy int, dst []bool) error {
	for x := range dst {
		dst[x] = iy%8 == 3 && x%8 == 5
	}
	return nil
}

// BenchmarkSweep sweeps with each kind of operator, 16 sweeps a pass on one thread, and reports updates of points.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{1024, 4096} {
		for _, t := range []solver.DType{solver.Float32, solver.Float64} {
			mesh := solver.Mesh{NX: n, NY: n, DType: t}
			w := wavy{mesh}
			kinds := []benchKind{
				{"plain", solver.Operator{}},
				{"fixed", solver.Operator{Fixed: w}},
				{"general", solver.Operator{Scale: 0.5, Blend: 0.25}},
				{"source", solver.Operator{Scale: 0.5, Blend: 0.5, Values: w}},
				{"source+fixed", solver.Operator{Scale: 0.5, Blend: 0.5, Values: w, Fixed: w}},
				{"weighted", solver.Operator{Weighted: true, Values: weights{w}}},
				{"free", solver.Operator{Weighted: true, Values: free{weights{w}}}},
				{"layers", solver.Operator{Weighted: true, Values: layers{w}}},
			}
			for _, kind := range kinds {
				for _, name := range kernel.Names() {
					if name == "portable" {
						continue
					}
					b.Run(fmt.Sprintf("%d/%v/%s/%s", n, t, name, kind.name), func(b *testing.B) {
						benchmarkSweep(b, mesh, kind, name)
					})
				}
			}
		}
	}
}

// benchKind is a kind of sweep.
type benchKind struct {
	name string
	op   solver.Operator
}

func benchmarkSweep(b *testing.B, mesh solver.Mesh, kind benchKind, name string) {
	const sweeps = 16
	l := solver.Layout{Mesh: mesh, Stripe: mesh.Interior(), Depth: sweeps, Magnitude: 4, Operator: kind.op}
	backend, err := New(l, Options{Threads: 1, Kernel: name})
	if err != nil {
		b.Fatal(err)
	}
	defer backend.Close()
	if err := backend.Load(b.Context(), wavy{mesh}); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		p := solver.Pass{Index: uint64(i), First: i * sweeps, Sweeps: sweeps}
		if err := backend.Interior(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	points := float64(mesh.NX-2) * float64(mesh.NY-2) * sweeps
	b.ReportMetric(points*float64(b.N)/b.Elapsed().Seconds()/1e9, "GLUP/s")
}
