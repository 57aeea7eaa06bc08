package multigrid

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/solver"
)

// TestFactors solves random equations of nine points with walls of every kind, on meshes that are long, square or of
// one point, with points that are not unknowns.
func TestFactors(t *testing.T) {
	const periodic, neumann = solver.Periodic, solver.Neumann
	for _, w := range []solver.Walls{{}, {Left: neumann, Right: neumann}, {Left: periodic, Right: periodic},
		{Top: periodic, Bottom: periodic}, {Left: periodic, Right: periodic, Top: periodic, Bottom: periodic}} {
		for _, size := range [][2]int{{3, 3}, {4, 4}, {9, 9}, {8, 40}, {40, 7}, {3, 6}, {6, 3}} {
			t.Run(fmt.Sprint(w, size), func(t *testing.T) {
				mesh := solver.Mesh{NX: size[0], NY: size[1], DType: solver.Float32, Walls: w}
				checkFactors(t, Layout{Plan: &Plan{Levels: []Level{{Mesh: mesh}}, Weighted: true}})
			})
		}
	}
}

// checkFactors compares products of a random matrix and the solution with the right-hand side.
func checkFactors(t *testing.T, l Layout) {
	m := l.Plan.Levels[0].Mesh
	r := rand.New(rand.NewPCG(uint64(m.NX), uint64(m.NY)))
	points := make([]Point, m.NX*m.NY)
	for i := range points {
		points[i] = Point{E: r.Float64(), S: r.Float64(), SE: r.Float64() - 0.2, SW: r.Float64() - 0.2}
		if i%7 != 3 {
			points[i].C = 8.5
		}
	}
	f, err := l.NewFactors(func(x, y int) Point { return points[y*m.NX+x] })
	if err != nil {
		t.Fatal(err)
	}
	index := map[[2]int]int{} // from point to block and slot
	x, b := make([]float64, f.Blocks*f.Slots), make([]float64, f.Blocks*f.Slots)
	for i := range b {
		px, py := f.Point(i/f.Slots, i%f.Slots)
		index[[2]int{px, py}] = i
		if points[py*m.NX+px].C > 0 {
			b[i] = r.Float64() - 0.5
		}
	}
	want := append([]float64(nil), b...)
	f.solve(x, b)
	got := make([]float64, len(x))
	lo, hi := m.InteriorColumns()
	couple := func(i int, px, py, to int, v float64) {
		if m.PeriodicColumns() {
			px = lo + (px-lo+hi-lo)%(hi-lo)
		}
		if rows := m.Interior(); m.PeriodicRows() {
			py = rows.Lo + (py-rows.Lo)%rows.Rows()
		}
		if k, ok := index[[2]int{px, py}]; ok && points[to].C > 0 && points[py*m.NX+px].C > 0 {
			got[i] -= v * x[k]
			got[k] -= v * x[i]
		}
	}
	for at, i := range index {
		to := at[1]*m.NX + at[0]
		p := points[to]
		if p.C > 0 {
			got[i] += p.C * x[i]
		} else if x[i] != 0 {
			t.Errorf("point %v is no unknown and has %v", at, x[i])
		}
		couple(i, at[0]+1, at[1], to, p.E)
		couple(i, at[0], at[1]+1, to, p.S)
		couple(i, at[0]+1, at[1]+1, to, p.SE)
		couple(i, at[0]-1, at[1]+1, to, p.SW)
	}
	for i, v := range want {
		if math.Abs(got[i]-v) > 1e-13 {
			t.Errorf("block %d slot %d: the product is %v, the right-hand side %v", i/f.Slots, i%f.Slots, got[i], v)
		}
	}
}
