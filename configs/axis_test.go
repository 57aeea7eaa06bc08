package configs

import (
	"strings"
	"testing"

	"jacobi/solver"
)

// The side that is the axis is natural, and it takes no value; the side opposite is not periodic.
func TestAxis(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string // the error
	}{
		{[]string{"grid.axis=left"}, ""},
		{[]string{"grid.axis=bottom", "problem.left=periodic", "problem.right=periodic"}, ""},
		{[]string{"grid.axis=right", "problem.right=neumann(0)"}, ""},
		{[]string{"grid.axis=left", "problem.left=0"}, `grid.axis "left", problem.left "0": the side is the axis, ` +
			"through which nothing flows; it takes no value"},
		{[]string{"grid.axis=top", "problem.top=flux(1)"}, `grid.axis "top", problem.top "flux(1)": the side is the ` +
			"axis, through which nothing flows; it takes no value"},
		{[]string{"grid.axis=left", "problem.right=periodic"}, `grid.axis "left", problem.right "periodic": the side ` +
			"opposite the axis cannot be periodic"},
		{[]string{"grid.axis=right", "problem.left=periodic", "problem.right=periodic"}, `grid.axis "right", ` +
			`problem.left "periodic": the side opposite the axis cannot be periodic`},
		{[]string{"grid.axis=middle"}, `grid.axis "middle": allowed are left, right, top and bottom; empty: none`},
	} {
		got, err := Load(Options{Set: c.keys})
		if err == nil {
			err = Validate(got)
		}
		if c.want != "" {
			if err == nil || err.Error() != c.want {
				t.Errorf("%v: %v, want %s", c.keys, err, c.want)
			}
			continue
		}
		walls, _ := got.Problem.Walls(got.Grid.DType)
		side := map[string]solver.Wall{"left": walls.Left, "right": walls.Right, "bottom": walls.Bottom}[got.Grid.Axis]
		fields, fault := FieldKeys(got)
		if err != nil || fault != nil || side != solver.Neumann || fields["grid.axis"] != got.Grid.Axis {
			t.Errorf("%s: %v, %v, wall %v, fields %v", strings.Join(c.keys, " "), err, fault, side, fields)
		}
	}
}
