package problem

import (
	"fmt"
	"math"
	"testing"

	"jacobi/configs"
)

// A plate between two others takes the charge of two capacitors, wherever it lies between points, and without width,
// too. Sides beside it let nothing through, so the field is exact.
func TestThinPlates(t *testing.T) {
	for _, turned := range []bool{false, true} {
		for _, at := range []float64{0.5, 0.51, 0.36, 0.4375, 0.3, 0.9} {
			for _, width := range []float64{0, 1e-12, 1e-7, 1e-4, 0.01} {
				axis, side := "x", configs.Problem{Left: "0", Right: "0", Top: "neumann(0)", Bottom: "neumann(0)"}
				if turned {
					axis, side = "y", configs.Problem{Left: "neumann(0)", Right: "neumann(0)", Top: "0", Bottom: "0"}
				}
				side.Fixed = fmt.Sprintf("abs(%s-%v) < %v", axis, at, width/2)
				if width == 0 {
					side.Fixed = fmt.Sprintf("%s == %v", axis, at)
				}
				side.Initial = "3"
				for _, nx := range []int{8, 9, 33} {
					p := open(t, config(nx, 7, "float64", side))
					if turned {
						p = open(t, config(7, nx, "float64", side))
					}
					_, r := solve(t, p)
					want := 3/(at-width/2) + 3/(1-at-width/2)
					if len(r.Regions) != 1 {
						t.Fatalf("%s, %d: %d regions", side.Fixed, nx, len(r.Regions))
					}
					if height := p.numbers.height; turned {
						want /= height
					} else {
						want *= height
					}
					if got := *r.Regions[0].Flux; math.Abs(got-want) > 3e-8*want {
						t.Errorf("%s, %d: charge %.12g, want %.12g", side.Fixed, nx, got, want)
					}
					if got := *r.Energy; math.Abs(got-want*3/2) > 5e-8*want {
						t.Errorf("%s, %d: energy %.12g, want %.12g", side.Fixed, nx, got, want*3/2)
					}
					if rest := *r.Balance.Remainder; math.Abs(rest) > 1e-9 {
						t.Errorf("%s, %d: remainder %g", side.Fixed, nx, rest)
					}
				}
			}
		}
	}
}

// A strip without width in the middle between two ground planes, as wide as they are apart, lies between points. Its
// capacitance is 4 K(k)/K(k') with k = tanh(pi/2) (S. B. Cohn, IRE Transactions MTT-2, 1954). The ends of the strip
// make the error, which is of first order.
func TestStripline(t *testing.T) {
	const exact = 5.764489924280475
	before := 0.0
	for _, n := range []int{18, 34, 66} {
		c := config(n, 6*(n-1)+1, "float64", configs.Problem{Fixed: "x == 0.5 and abs(y-0.5) < 1/12", Initial: "1",
			Left: "0", Right: "0", Top: "neumann(0)", Bottom: "neumann(0)"})
		c.Grid.Width, c.Grid.Height = 1, 6
		_, r := solve(t, open(t, c))
		off := exact - *r.Regions[0].Flux
		if most := 0.53 / float64(n-1); len(r.Regions) != 1 || math.Abs(off/exact) > most {
			t.Errorf("%d points: off by %.3g, want at most %.3g", n, off/exact, most)
		}
		if before != 0 && before/off < 1.9 {
			t.Errorf("%d points: off by %g, by %g with half of them", n, off, before)
		}
		before = off
	}
}

// Between periodic sides a plate between the last column and the first one is as good as any other.
func TestThinPlateAtASeam(t *testing.T) {
	diagonals := func(fixed string) (all []float64) {
		p := open(t, config(9, 5, "float64", configs.Problem{Fixed: fixed, Initial: "3", Left: "periodic",
			Right: "periodic"}))
		for iy := 1; iy < 4; iy++ {
			st, err := p.take(0).stencil(iy)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, st.diagonal[1:8]...)
		}
		return all
	}
	seam, inside := diagonals("abs(x - 0.0625) < 0.001"), diagonals("abs(x - 0.0625 - 3/7) < 0.001")
	for i := range inside {
		if want := inside[i-i%7+(i+3)%7]; math.Abs(seam[i]-want) > 1e-6*want {
			t.Errorf("row %d, column %d: diagonal %v, want %v", 1+i/7, 1+i%7, seam[i], want)
		}
	}
}
