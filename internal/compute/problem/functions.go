package problem

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/base/style"
	"jacobi/internal/base/suggest"
	"jacobi/internal/compute/elementary"
)

// function is a function of one argument, or of two. A variadic one is applied to the first two arguments, then to the
// result and the third, and so on.
type function struct {
	name     string
	one      func(float64) float64
	two      func(a, b float64) float64
	variadic bool
}

// functions returns all functions. Those whose values are rounded come from package elementary, which computes the same
// bits on every processor; the functions of package math do not.
func functions() []function {
	return []function{
		{name: "sin", one: elementary.Sin}, {name: "cos", one: elementary.Cos}, {name: "tan", one: elementary.Tan},
		{name: "asin", one: elementary.Asin}, {name: "acos", one: elementary.Acos},
		{name: "atan", one: elementary.Atan}, {name: "atan2", two: elementary.Atan2},
		{name: "sinh", one: elementary.Sinh}, {name: "cosh", one: elementary.Cosh},
		{name: "tanh", one: elementary.Tanh}, {name: "exp", one: elementary.Exp}, {name: "log", one: elementary.Log},
		{name: "log10", one: elementary.Log10}, {name: "sqrt", one: math.Sqrt},
		{name: "cbrt", one: elementary.Cbrt},
		{name: "abs", one: math.Abs}, {name: "min", two: math.Min, variadic: true},
		{name: "max", two: math.Max, variadic: true}, {name: "floor", one: math.Floor}, {name: "ceil", one: math.Ceil},
		{name: "round", one: math.Round}, {name: "pow", two: elementary.Pow}, {name: "hypot", two: elementary.Hypot},
		{name: "mod", two: math.Mod}, {name: "float32", one: func(a float64) float64 { return float64(float32(a)) }},
	}
}

// functionOf returns the function called name.
func functionOf(name string) (f function, ok bool) {
	all := functions()
	i := slices.IndexFunc(all, func(f function) bool { return f.name == name })
	if i < 0 {
		return function{}, false
	}
	return all[i], true
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// comparison returns the comparison of two numbers as a function that returns 1 for true and 0 for false.
func comparison(operator string) func(a, b float64) float64 {
	switch operator {
	case "<":
		return func(a, b float64) float64 { return truth(a < b) }
	case "<=":
		return func(a, b float64) float64 { return truth(a <= b) }
	case ">":
		return func(a, b float64) float64 { return truth(a > b) }
	case ">=":
		return func(a, b float64) float64 { return truth(a >= b) }
	case "==":
		return func(a, b float64) float64 { return truth(a == b) }
	}
	return func(a, b float64) float64 { return truth(a != b) }
}

// Names returns the names of the values that an expression may use.
func Names() []string {
	return []string{"x", "y", "ix", "iy", "nx", "ny", "width", "height", "pi", "e"}
}

// Functions returns the names of the functions that an expression may call.
func Functions() (names []string) {
	for _, f := range functions() {
		names = append(names, f.name)
	}
	return names
}

// Help returns the help text on expressions.
func Help() string {
	row := func(head, text string) string { return style.Paragraph(fmt.Sprintf("%-13s", head), text, 13, 80) }
	return strings.Join([]string{
		"problem.left, right, top, bottom, initial, source, coefficient and screening take a number or an " +
			"expression: the value at each point.",
		`  --set problem.left='sin(2*pi*y)'
  --set problem.initial='hypot(x-0.5, y-0.5) < 0.2 ? 1 : 0'
  --set problem.coefficient='y < 0.5 ? 4.4 : 1'     a; 0: no material
  --set problem.right='neumann(0)'                  du/dn = 0, n out of the side
  --set problem.top='robin(8, 160)'                 a du/dn + 8 u = 160
  --set problem.fixed='hypot(x-0.5, y-0.5) < 0.2'   a condition for fixed points`,
		row("Values:", "x (0 on the left to 1), y (0 on top to 1: downwards), ix, iy (column and row, from 0), nx, "+
			"ny, width, height (of the grid), pi, e") + "\n" +
			row("Functions:", strings.Join(Functions(), ", ")) + "\n" +
			row("Operators:", "+ - * / % ^ (or **), < <= > >= == !=, && || ! (or and, or, not), condition ? value : "+
				"value, parentheses"),
		"All numbers are float64, also whole ones: 1/2 is 0.5. Angles are in radians. log is the natural logarithm, " +
			"x % y and mod(x, y) have the sign of x, round takes halves away from 0, and float32(x) rounds x to " +
			"float32. min and max take two arguments or more, pow, atan2, hypot and mod take two, the others one. " +
			"The value is rounded once to grid.dtype and has to be finite.",
	}, "\n\n")
}

// hint suggests the known word that is nearest to word.
func hint(word string, known []string) string {
	if near, ok := suggest.Nearest(word, known); ok {
		return "did you mean " + near + "?"
	}
	return "launcher help expressions lists all"
}

// What the keys of a problem take, for messages.
const (
	sidesTake  = "a number, an expression, a NumPy array (.npy), periodic, neumann(g) and robin(h, g)"
	valuesTake = "a number, an expression and a NumPy array (.npy)"
	fixedTakes = "a condition, such as hypot(x-0.5, y-0.5) < 0.2, a NumPy array (.npy) and a PNG picture (.png)"
)
