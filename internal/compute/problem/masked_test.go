package problem

import (
	"fmt"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// maskedOf returns the problem of 6 x 5 points with the given keys.
func maskedOf(t *testing.T, keys ...string) *Problem {
	t.Helper()
	c, err := configs.Load(configs.Options{Set: append([]string{"grid.nx=6", "grid.ny=5", "problem.preset=dirichlet"},
		keys...)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// The masked field has the walls and the fixed points, and 0 elsewhere, also at walls that a sweep updates. The guess
// is the largest value that it leaves out, and the data the largest that it keeps.
func TestMasked(t *testing.T) {
	for _, c := range []struct {
		name, field string
		keys        []string
		guess, data float64
	}{
		{"fixed walls", "2 3 3 3 3 -4/2 0 0 0 0 -4/2 0 0 0 0 -4/2 0 0 0 0 -4/2 1 1 1 1 -4",
			[]string{"problem.initial=7", "problem.left=2", "problem.right=-4", "problem.top=3", "problem.bottom=1"}, 7,
			4},
		{"insulated and fixed points", "0 0 0 0 0 1/0 0 0 0 0 1/0 0 -9 0 0 1/0 0 0 0 0 1/0 0 0 0 0 1",
			[]string{"problem.initial=ix == 2 and iy == 2 ? -9 : ix", "problem.fixed=ix == 2 and iy == 2",
				"problem.left=neumann(1)", "problem.right=1", "problem.top=neumann(0)", "problem.bottom=neumann(0)"}, 4,
			9},
		{"periodic", "0 5 5 5 5 0/0 0 0 0 0 0/0 0 0 0 0 0/0 0 0 0 0 0/0 1 1 1 1 0",
			[]string{"problem.initial=-8", "problem.left=periodic", "problem.right=periodic", "problem.top=5",
				"problem.bottom=1"}, 8, 5},
		{"nothing but a guess", "0 0 0 0 0 0/0 0 0 0 0 0/0 0 0 0 0 0/0 0 0 0 0 0/0 0 0 0 0 0",
			[]string{"problem.initial=1e30", "problem.top=0"}, 1e30, 0},
	} {
		p := maskedOf(t, c.keys...)
		var rows []string
		for iy := range 5 {
			row, values := make([]byte, p.mesh.RowBytes()), make([]float64, 6)
			if err := (Masked{p}).Row(iy, row); err != nil {
				t.Fatal(err)
			}
			p.mesh.DType.Decode(values, row)
			if p.mesh.PeriodicColumns() { // what rows yield there does not matter
				values[0], values[5] = 0, 0
			}
			rows = append(rows, strings.Trim(fmt.Sprint(values), "[]"))
		}
		if got := strings.Join(rows, "/"); got != c.field {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.field)
		}
		guess, data, err := p.MaxGuess(t.Context(), 0, 5)
		if err != nil || guess != c.guess || data != c.data {
			t.Errorf("%s: guess %g, data %g, %v; want %g, %g", c.name, guess, data, err, c.guess, c.data)
		}
	}
}

var _ solver.RowSource = Masked{}
