package problem

import (
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// A point that an array fixes in a periodic row or column is that which it copies, with the value there. One that is
// fixed itself keeps its own.
func TestFixedCopies(t *testing.T) {
	const nx, ny = 7, 6
	all := configs.Problem{Left: "periodic", Right: "periodic", Top: "periodic", Bottom: "periodic"}
	columns := configs.Problem{Left: "periodic", Right: "periodic", Top: "9", Bottom: "8"}
	for _, c := range []struct {
		sides       configs.Problem
		fixed, same string // another way to say it
		values      string // problem.initial for the other way
	}{
		{all, "ix == 0 and iy == 2", "ix == 5 and iy == 2", "ix == 5 and iy == 2 ? 0 + 20 : ix + 10*iy"},
		{all, "ix == 6 and iy == 2", "ix == 1 and iy == 2", "ix == 1 and iy == 2 ? 6 + 20 : ix + 10*iy"},
		{all, "ix == 3 and iy == 0", "ix == 3 and iy == 4", "ix == 3 and iy == 4 ? 3 : ix + 10*iy"},
		{all, "ix == 3 and iy == 5", "ix == 3 and iy == 1", "ix == 3 and iy == 1 ? 53 : ix + 10*iy"},
		{all, "ix == 0 and iy == 0", "ix == 5 and iy == 4", "ix == 5 and iy == 4 ? 0 : ix + 10*iy"},
		{all, "ix == 6 and iy == 5", "ix == 1 and iy == 1", "ix == 1 and iy == 1 ? 56 : ix + 10*iy"},
		{all, "ix == 0 or ix == 5 and iy > 2", "ix == 5", "ix == 5 and (iy < 3) ? 10*iy : ix + 10*iy"},
		{all, "mod(ix, 5) == 0 and mod(iy, 4) == 0", "ix == 5 and iy == 4", "ix + 10*iy"},
		{columns, "ix == 0 and iy == 2", "ix == 5 and iy == 2", "ix == 5 and iy == 2 ? 0 + 20 : ix + 10*iy"},
	} {
		of := func(fixed, initial string) (marks []bool, rows [][]byte) {
			k := c.sides
			k.Fixed, k.Initial = fixed, initial
			p := open(t, config(nx, ny, "float64", k))
			for iy := range ny {
				row, on := make([]byte, p.Mesh().RowBytes()), make([]bool, nx)
				if err := p.Row(iy, row); err != nil {
					t.Fatal(err)
				}
				if err := p.FixedRow(iy, on); err != nil {
					t.Fatal(err)
				}
				if iy > 0 && p.RowRepeats(iy) && !slices.Equal(row, rows[iy-1]) {
					t.Errorf("%q: row %d does not repeat the one above", fixed, iy)
				}
				marks, rows = append(marks, on...), append(rows, row)
			}
			return marks, rows
		}
		marks, rows := of(c.fixed, "ix + 10*iy")
		want, values := of(c.same, c.values)
		if !slices.Equal(marks, want) {
			t.Errorf("%q: fixed are %v, want %v", c.fixed, marks, want)
		}
		if !slices.EqualFunc(rows, values, slices.Equal[[]byte]) {
			for iy := range rows {
				got, other := make([]float64, nx), make([]float64, nx)
				solver.Float64.Decode(got, rows[iy])
				solver.Float64.Decode(other, values[iy])
				t.Logf("%v, want %v", got, other)
			}
			t.Errorf("%q: other values than with %q", c.fixed, c.same)
		}
	}
}
