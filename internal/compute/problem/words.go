package problem

import (
	"fmt"
	"strings"

	"jacobi/internal/base/style"
	"jacobi/internal/base/suggest"
)

// Names returns the names of the values that an expression may use.
func Names() []string {
	return []string{"x", "y", "ix", "iy", "nx", "ny", "width", "height", "pi", "e"}
}

// Functions returns the names of the functions that an expression may call.
func Functions() []string { return functions() }

// Help returns the help text on expressions.
func Help() string {
	return fmt.Sprintf(`problem.left, right, top, bottom, initial and source take a number or an expression: the `+
		`value at each point.

  --set problem.left='sin(2*pi*y)'
  --set problem.initial='hypot(x-0.5, y-0.5) < 0.2 ? 1 : 0'
  --set problem.right='neumann(0)'                                  the derivative out of a side
  --set problem.fixed='hypot(x-0.5, y-0.5) < 0.2'                   a condition for the points that stay

Values:      x, y (0 to 1 over width and height), ix, iy (column and row, from 0), nx, ny, width, height (of the
             grid), pi, e
%s
Operators:   + - * / %% ^ (or **), < <= > >= == !=, && || ! (or and, or, not), condition ? value : value, parentheses

All numbers are float64, also whole ones: 1/2 is 0.5. Angles are in radians. log is the natural logarithm, x %% y and
mod(x, y) have the sign of x, round takes halves away from 0, and float32(x) rounds x to float32. min and max take two
arguments or more, pow, atan2, hypot and mod take two, the others one. The value is rounded once to grid.dtype and has
to be finite.`, style.Paragraph("Functions:   ", strings.Join(Functions(), ", "), 13, 100))
}

// hint suggests the known word nearest to word, or lists all known words if none is near.
func hint(word string, known []string) string {
	if near, ok := suggest.Nearest(word, known); ok {
		return "did you mean " + near + "?"
	}
	return "known are " + strings.Join(known, ", ")
}
