package problem

import (
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// A row has the same weights in chunks as point by point. The last chunk has one column here.
func TestWeightsInChunks(t *testing.T) {
	const nx = 2*chunk + 1
	p := open(t, config(nx, 5, "float64", configs.Problem{Coefficient: "ix == 7 ? 0 : 1 + x*y", Left: "robin(2, 1)",
		Right: "neumann(1)", Top: "0", Bottom: "1"}))
	st, err := p.take(0).stencil(2)
	if err != nil {
		t.Fatal(err)
	}
	for k := solver.West; k <= solver.South; k++ {
		var buf [chunk]float64
		for ix := range nx {
			if ix%chunk == 0 {
				st.weights(k, ix, buf[:min(chunk, nx-ix)])
			}
			want := 0.0
			if st.diagonal[ix] != 0 {
				want = map[solver.Value]float64{solver.West: st.alongX[max(ix-1, 0)],
					solver.East: st.alongX[min(ix, nx-2)], solver.North: st.above.alongY[ix],
					solver.South: st.alongY[ix]}[k] / st.diagonal[ix]
			}
			if got := buf[ix%chunk]; got != want || (want == 0) != (ix == 7 || ix == 6 && k == solver.East ||
				ix == 8 && k == solver.West) {
				t.Fatalf("%v of column %d: %v, want %v", k, ix, got, want)
			}
		}
	}
}
