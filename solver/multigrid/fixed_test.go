package multigrid_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// shape yields the fixed points inside a mesh.
type shape struct {
	nx int
	at func(x, y int) bool
}

// FixedRow implements solver.FixedRows.
func (s shape) FixedRow(iy int, dst []bool) error {
	for x := range s.nx {
		dst[x] = s.at(x, iy)
	}
	return nil
}

// shapes are the fixed points of tests, on meshes of n x n points.
func shapes(n int) map[string]func(x, y int) bool {
	apart := func(a, b int) int { return max(a-b, b-a) }
	return map[string]func(x, y int) bool{
		"plates":   func(x, y int) bool { return (y == n/3 || y == 2*n/3) && x > n/4 && x < 3*n/4 },
		"disc":     func(x, y int) bool { return (x-n/2)*(x-n/2)+(y-n/2)*(y-n/2) < n*n/36 },
		"diagonal": func(x, y int) bool { return apart(x, y) < 2 && x > n/4 && x < 3*n/4 },
		"thin":     func(x, y int) bool { return x == y && x > n/4 && x < 3*n/4 },
		"slanted":  func(x, y int) bool { return y == n/3+x*3/10 && x > n/4 && x < 3*n/4 },
		"dots":     func(x, y int) bool { return x%17 == 3 && y%13 == 5 },
		"sparse":   func(x, y int) bool { return x%61 == 33 && y%57 == 30 },
		"point":    func(x, y int) bool { return x == n/3 && y == n/2 },
		"gap":      func(x, y int) bool { return y == n/2 && apart(x, n/2) > 2 },
		"comb":     func(x, y int) bool { return x%8 == 0 && y > n/4 && y < n/2 },
		"channel":  func(x, y int) bool { return apart(y, n/2) > 3 && apart(y, n/2) < 6 },
	}
}

// TestAccelerated checks how many cycles conjugate gradients take to divide the norm by 1e8, with fixed points of all
// shapes, and between walls of all kinds.
func TestAccelerated(t *testing.T) {
	skipAlone(t)
	const neumann, periodic = solver.Neumann, solver.Periodic
	for n, walls := range map[int]solver.Walls{
		129: {},
		200: {Left: neumann, Top: neumann, Bottom: neumann},
		333: {Left: periodic, Right: periodic},
	} {
		for name, at := range shapes(n) {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				mesh := solver.Mesh{NX: n, NY: n, DType: solver.Float64, Walls: walls}
				norms := norms(t, mesh, solver.Operator{Fixed: shape{n, at}}, true, 20)
				cycles := slices.IndexFunc(norms, func(v float64) bool { return v <= 1e-8*norms[0] })
				t.Logf("%d cycles", cycles)
				if most := map[string]int{"dots": 14, "sparse": 14}[name]; cycles < 0 || cycles > max(12, most) {
					t.Errorf("%d cycles, want at most %d; norms %.1e", cycles, max(12, most), norms)
				}
			})
		}
	}
}

// TestFixedFactor checks that plain cycles converge with fixed points of all shapes, also those thinner than the
// spacing of the coarser levels.
func TestFixedFactor(t *testing.T) {
	for _, n := range []int{129, 200} {
		for name, at := range shapes(n) {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				norms := norms(t, solver.Mesh{NX: n, NY: n, DType: solver.Float64},
					solver.Operator{Fixed: shape{n, at}}, false, 12)
				factor := math.Pow(norms[12]/norms[6], 1.0/6)
				t.Logf("factor %.3f", factor)
				if !(factor < 0.75) {
					t.Errorf("a cycle multiplies the norm by %.3f; norms %.1e", factor, norms)
				}
			})
		}
	}
}

// Rows that ranks read apart and exchange are the rows that one rank reads, and other data are refused.
func TestFixedRowsTravel(t *testing.T) {
	const nx, ny = 130, 40
	m := solver.Mesh{NX: nx, NY: ny, DType: solver.Float64, Walls: solver.Walls{Top: solver.Neumann}}
	for name, at := range shapes(ny) {
		rows, whole := shape{nx, at}, make(multigrid.FixedRuns, ny)
		if err := whole.Read(m, rows, solver.Stripe{Hi: ny}); err != nil {
			t.Fatal(err)
		}
		got := make(multigrid.FixedRuns, ny)
		var data []byte
		for _, s := range []solver.Stripe{{Lo: 0, Hi: 16}, {Lo: 16, Hi: 24}, {Lo: 24, Hi: 39}} {
			part := make(multigrid.FixedRuns, ny)
			if err := part.Read(m, rows, s); err != nil {
				t.Fatal(err)
			}
			data = append(data, part.Encode(s)...)
		}
		interior := m.Interior()
		if err := got.Decode(data, interior, nx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if same := slices.EqualFunc(got[interior.Lo:interior.Hi], whole[interior.Lo:interior.Hi],
			slices.Equal[[]multigrid.Columns]); !same {
			t.Errorf("%s: %v, want %v", name, got, whole)
		}
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte{0, 1, 4, 2}, ""},
		{[]byte{0, 1, 4, 7}, "fixed points of row 6: not encoded runs of columns"}, // beyond the last column
		{[]byte{0, 1, 4, 0}, "fixed points of row 6: not encoded runs of columns"}, // an empty run
		{[]byte{0, 11}, "fixed points of row 6: not encoded runs of columns"},
		{[]byte{0, 2, 4, 2}, "fixed points of row 6: not encoded runs of columns"},
		{[]byte{0}, "fixed points of row 6: not encoded runs of columns"},
		{[]byte{0, 0x80}, "fixed points of row 6: not encoded runs of columns"},
		{[]byte{0, 0, 0}, "fixed points of rows [5, 7): 1 bytes more than their runs"},
	} {
		err := make(multigrid.FixedRuns, 8).Decode(c.data, solver.Stripe{Lo: 5, Hi: 7}, 10)
		if err != nil && err.Error() != c.want || err == nil && c.want != "" {
			t.Errorf("%v: %v, want %s", c.data, err, c.want)
		}
	}
}
