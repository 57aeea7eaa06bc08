package problem

import (
	"fmt"
	"math"
	"strings"

	"jacobi/internal/base/style"
	"jacobi/internal/base/suggest"
	"jacobi/internal/compute/elementary"
)

// Functions whose values are rounded come from package elementary, which computes the same bits on every processor. The
// functions of package math do not.

// unaryFunction returns the function of one argument called name.
func unaryFunction(name string) (func(float64) float64, bool) {
	f, ok := map[string]func(float64) float64{
		"sin": elementary.Sin, "cos": elementary.Cos, "tan": elementary.Tan,
		"asin": elementary.Asin, "acos": elementary.Acos, "atan": elementary.Atan,
		"sinh": elementary.Sinh, "cosh": elementary.Cosh, "tanh": elementary.Tanh,
		"exp": elementary.Exp, "log": elementary.Log, "log10": elementary.Log10,
		"sqrt": math.Sqrt, "cbrt": elementary.Cbrt, "abs": math.Abs,
		"floor": math.Floor, "ceil": math.Ceil, "round": math.Round,
		"float32": func(a float64) float64 { return float64(float32(a)) },
	}[name]
	return f, ok
}

// binaryFunction returns the function of two arguments called name. A variadic function is applied to the first two
// arguments, then to the result and the third, and so on.
func binaryFunction(name string) (f func(a, b float64) float64, variadic, ok bool) {
	switch name {
	case "min":
		return math.Min, true, true
	case "max":
		return math.Max, true, true
	case "pow":
		return elementary.Pow, false, true
	case "atan2":
		return elementary.Atan2, false, true
	case "hypot":
		return elementary.Hypot, false, true
	case "mod":
		return math.Mod, false, true
	}
	return nil, false, false
}

// functions lists the names of all functions.
func functions() []string {
	return []string{
		"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "log10", "sqrt",
		"cbrt",
		"abs", "min", "max", "floor", "ceil", "round", "pow", "hypot", "mod", "float32",
	}
}

func isFunction(name string) bool {
	_, one := unaryFunction(name)
	_, _, two := binaryFunction(name)
	return one || two
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
func Functions() []string { return functions() }

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
