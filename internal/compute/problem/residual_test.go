package problem

import (
	"math"
	"math/big"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// What sweeps miss of residuals is C (R t - u), each operation rounded, less the exact residual. On a mesh of more
// points than are looked at, one stands for two.
func TestRoundingOfResiduals(t *testing.T) {
	for _, c := range []struct{ n, every int }{{21, 1}, {400, 2}} {
		n := c.n
		p := open(t, config(n, n, "float64", configs.Problem{Coefficient: "1+100*x*y", Source: "(1+x)/1000"}))
		u, cells := make([][]float64, n), make([]int, n)
		for iy := range u {
			for ix := range n {
				u[iy], cells[ix] = append(u[iy], 1+1e-7*float64(ix*iy)/float64(n)), 2*ix/n
			}
		}
		centre, east, south, source := valueRows(t, p, solver.Diagonal), valueRows(t, p, solver.EastFace),
			valueRows(t, p, solver.SouthFace), valueRows(t, p, solver.Source)
		for _, iy := range []int{1, 2, n / 2, n - 2} {
			got, want, size, looked := make([]float64, 2), [2]float64{}, 0.0, 0
			if err := p.AddRounding(iy, u[iy-1], u[iy], u[iy+1], cells, got); err != nil {
				t.Fatal(err)
			}
			first := 2
			if c.every > 1 {
				first += int(uint32(iy)*2654435769>>16) % c.every
			}
			for ix := first; ix < n-2; ix += c.every {
				at, b, sum := u[iy][ix], centre[iy][ix]*source[iy][ix], 0.0
				exact := new(big.Float).SetPrec(200).SetFloat64(b)
				for _, f := range []struct{ g, u float64 }{{south[iy][ix], u[iy+1][ix]}, {south[iy-1][ix], u[iy-1][ix]},
					{east[iy][ix], u[iy][ix+1]}, {east[iy][ix-1], u[iy][ix-1]}} {
					if looked++; looked%4 == 1 {
						sum = b
					}
					sum = math.FMA(f.g, f.u, sum)
					step := new(big.Float).SetPrec(200).Sub(big.NewFloat(f.u), big.NewFloat(at))
					exact.Add(exact, step.Mul(step.SetPrec(200), big.NewFloat(f.g)))
				}
				d := float64(centre[iy][ix] * math.FMA(1/centre[iy][ix], sum, -at))
				missed, _ := new(big.Float).Sub(big.NewFloat(d).SetPrec(200), exact).Float64()
				want[cells[ix]] += float64(c.every) * missed
				size += math.Abs(missed)
			}
			for cell := range got {
				if off := math.Abs(got[cell] - want[cell]); !(off < 1e-5*size) || size == 0 {
					t.Errorf("%d points, row %d, cell %d: %g, want %g of %g", n, iy, cell, got[cell], want[cell], size)
				}
			}
		}
	}
}
