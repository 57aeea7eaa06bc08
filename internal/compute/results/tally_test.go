package results

import (
	"math/rand/v2"
	"slices"
	"testing"

	"jacobi/solver"
)

// The sums of a row without materials are, bit by bit, those with materials of 1, and those of a row without lifts are
// those with lifts of 0.
func TestSumsOfPlainRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) (row []float64) {
		for range n {
			row = append(row, r.NormFloat64())
		}
		return row
	}
	for _, nx := range []int{3, 4, 50} {
		ones, none := slices.Repeat([]float64{1}, nx), make([]float64, nx)
		for _, walls := range []solver.Walls{{}, {Left: solver.Periodic, Right: solver.Periodic}} {
			tally := Tally{mesh: solver.Mesh{NX: nx, NY: 9, DType: solver.Float64, Walls: walls}}
			u := random(nx)
			for _, above := range [][]float64{nil, random(nx)} {
				out := make([]bool, nx)
				lifted := &ground{Faces{East: ones, North: ones, LiftEast: none, LiftNorth: none}, ones, out, nil}
				want := tally.sumsOf(above, u, 4, lifted)
				if got := tally.sumsOf(above, u, 4, nil); got != want {
					t.Errorf("%d columns, walls %v: %+v, want %+v", nx, walls, got, want)
				}
				lifted.East, lifted.North, lifted.screening, out[nx/2] = random(nx), random(nx), random(nx), true
				straight := *lifted
				straight.LiftEast, straight.LiftNorth = nil, nil
				want = tally.sumsOf(above, u, 4, lifted)
				if got := tally.sumsOf(above, u, 4, &straight); got != want {
					t.Errorf("%d columns, walls %v, coefficients: %+v, want %+v", nx, walls, got, want)
				}
			}
		}
	}
}
