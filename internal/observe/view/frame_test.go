package view

import (
	"math"
	"testing"

	"jacobi/solver"
)

// BenchmarkEncode makes the message with a frame of the size that pages ask for.
func BenchmarkEncode(b *testing.B) {
	w := Window{X1: 2048, Y1: 2048, Cols: 512, Rows: 512}
	values := make([]float64, w.Cols*w.Rows)
	for i := range values {
		values[i] = math.Sin(float64(i) / 1000)
	}
	for b.Loop() {
		f := &Frame{Window: w, DType: solver.Float32, Values: values, Scale: "auto"}
		f.encode()
	}
}
