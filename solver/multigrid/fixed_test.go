package multigrid_test

import (
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
		"dots":     func(x, y int) bool { return x%17 == 3 && y%13 == 5 },
		"point":    func(x, y int) bool { return x == n/3 && y == n/2 },
		"gap":      func(x, y int) bool { return y == n/2 && apart(x, n/2) > 2 },
		"comb":     func(x, y int) bool { return x%8 == 0 && y > n/4 && y < n/2 },
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
