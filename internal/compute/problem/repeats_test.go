package problem

import (
	"bytes"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// Rows that are said to be the same as the row above are the same when each is worked out by itself, and what is worked
// out once for several rows has the values of each.
func TestRepeatedRows(t *testing.T) {
	const nx, ny = 14, 17
	pixels := drawn("cc..", "cc..", "..bb")
	colours := "#b87333 value=1 coefficient=2; #1565c0 coefficient=5; #ffffff coefficient=1"
	for name, c := range map[string]struct {
		problem configs.Problem
		rows    int // that repeat, of the field
		values  int // of the operator
	}{
		"plain":     {configs.Problem{Initial: "x", Left: "1"}, ny - 3, ny - 3},
		"source":    {configs.Problem{Source: "sin(3*x)", Left: "neumann(2)", Right: "x"}, ny - 3, ny - 3},
		"walls":     {configs.Problem{Source: "1", Top: "neumann(x)", Bottom: "neumann(1)"}, ny - 1, ny - 3},
		"y":         {configs.Problem{Source: "y", Initial: "iy", Fixed: "y < x"}, 0, 0},
		"left y":    {configs.Problem{Source: "1", Left: "y"}, 0, ny - 3},
		"neumann y": {configs.Problem{Source: "1", Left: "neumann(y)"}, ny - 3, 0},
		"periodic": {configs.Problem{Source: "x", Initial: "x", Top: "periodic", Bottom: "periodic",
			Left: "periodic", Right: "periodic"}, ny - 3, ny - 3},
		"weighted": {configs.Problem{Source: "x", Coefficient: "x < 0.3 ? 0 : x", Screening: "x", Right: "robin(1, x)",
			Fixed: "x > 0.8"}, ny - 3, ny - 5},
		"weighted y": {configs.Problem{Coefficient: "y < 0.5 ? 1 : 2"}, ny - 3, 0},
		"porous y":   {configs.Problem{Coefficient: "y < 0.5 ? 0 : 2"}, 0, 0},
		"inflow":     {configs.Problem{Coefficient: "1 + y", Left: "neumann(1)", Source: "1"}, ny - 3, 0},
		"edge y":     {configs.Problem{Coefficient: "1 + x", Fixed: "x > 0.8", Initial: "y"}, 0, 0},
		"robin y":    {configs.Problem{Right: "robin(1, y)"}, ny - 3, 0},
		"fixed y":    {configs.Problem{Coefficient: "1 + x", Fixed: "y < x"}, ny - 3, 0},
		"drawing": {configs.Problem{Drawing: pngFile(t, pixels), Colours: colours, Initial: "x", Source: "x"}, ny - 8,
			ny - 12},
		"drawing y": {configs.Problem{Drawing: pngFile(t, pixels), Colours: colours, Initial: "y"}, 0, 0},
		"picture":   {configs.Problem{Fixed: pngFile(t, pixels), Coefficient: "1 + x"}, ny - 3, ny - 12},
	} {
		t.Run(name, func(t *testing.T) {
			p, each := open(t, config(nx, ny, "float64", c.problem)), open(t, config(nx, ny, "float64", c.problem))
			alone := newFirsts(ny, func(int) bool { return false })
			each.stencils, each.grounds = alone, alone
			read := func(what string, p *Problem, row func(iy int, dst []byte) error, iy int) []byte {
				dst := make([]byte, 8*nx)
				if err := row(iy, dst); err != nil {
					t.Fatalf("%s of row %d: %v", what, iy, err)
				}
				return dst
			}
			rows, values := 0, 0
			check := func(what string, count *int, repeats func(int) bool, quick, own func(int, []byte) error) {
				for iy := range ny {
					want := read(what, each, own, iy)
					if got := read(what, p, quick, iy); !bytes.Equal(got, want) {
						t.Errorf("%s of row %d: % x, want % x", what, iy, got, want)
					}
					if iy > 0 && repeats(iy) {
						*count++
						if !bytes.Equal(want, read(what, each, own, iy-1)) {
							t.Errorf("%s of row %d differs from that of the row above", what, iy)
						}
					}
				}
			}
			check("field", &rows, p.RowRepeats, p.Row, each.Row)
			check("masked field", new(int), Masked{p}.RowRepeats, Masked{p}.Row, Masked{each}.Row)
			kinds := []solver.Value{solver.Source}
			if p.weighted {
				kinds = []solver.Value{solver.Coefficient, solver.RightHandSide, solver.Source, solver.West,
					solver.East, solver.North, solver.South, solver.Diagonal, solver.EastFace, solver.SouthFace}
			}
			for _, k := range kinds {
				values = 0
				check(k.String(), &values, func(iy int) bool { return p.ValueRepeats(iy, k) },
					func(iy int, dst []byte) error { return p.ValueRow(iy, k, dst) },
					func(iy int, dst []byte) error { return each.ValueRow(iy, k, dst) })
			}
			if rows != c.rows || values != c.values {
				t.Errorf("%d rows of the field repeat, and %d of values; want %d and %d", rows, values, c.rows,
					c.values)
			}
		})
	}
}
