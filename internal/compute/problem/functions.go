package problem

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/base/imagefile"
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
	limit    func(bounds) bounds // of one
	limits   func(a, b bounds) bounds
	// branch and branches return a number that changes where the function jumps, of one and two arguments; nil for a
	// function that does not jump.
	branch   func(float64) float64
	branches func(a, b float64) float64
}

// functions returns all functions. Those whose values are rounded come from package elementary, which computes the same
// bits on every processor; the functions of package math do not.
func functions() []function {
	inf := math.Inf(1)
	single := func(a float64) float64 { return float64(float32(a)) }
	turns := func(a float64) float64 { return math.Floor(a/math.Pi + 0.5) }
	below := func(y, x float64) float64 { return truth(y < 0 && x < 0) }
	times := func(a, b float64) float64 { return math.Trunc(a / b) }
	return []function{
		{name: "sin", one: elementary.Sin, limit: wave(elementary.Sin)},
		{name: "cos", one: elementary.Cos, limit: wave(elementary.Cos)},
		{name: "tan", one: elementary.Tan, limit: tangentBounds, branch: turns},
		{name: "asin", one: elementary.Asin, limit: rising(elementary.Asin, -1, 1)},
		{name: "acos", one: elementary.Acos, limit: acosBounds},
		{name: "atan", one: elementary.Atan, limit: everywhere(elementary.Atan)},
		{name: "atan2", two: elementary.Atan2, limits: atan2Bounds, branches: below},
		{name: "sinh", one: elementary.Sinh, limit: everywhere(elementary.Sinh)},
		{name: "cosh", one: elementary.Cosh, limit: even(elementary.Cosh)},
		{name: "tanh", one: elementary.Tanh, limit: everywhere(elementary.Tanh)},
		{name: "exp", one: elementary.Exp, limit: everywhere(elementary.Exp)},
		{name: "log", one: elementary.Log, limit: rising(elementary.Log, 0, inf)},
		{name: "log10", one: elementary.Log10, limit: rising(elementary.Log10, 0, inf)},
		{name: "sqrt", one: math.Sqrt, limit: rising(math.Sqrt, 0, inf)},
		{name: "cbrt", one: elementary.Cbrt, limit: everywhere(elementary.Cbrt)},
		{name: "abs", one: math.Abs, limit: even(math.Abs)},
		{name: "min", two: math.Min, variadic: true, limits: minBounds},
		{name: "max", two: math.Max, variadic: true, limits: maxBounds},
		{name: "floor", one: math.Floor, limit: steps(math.Floor), branch: math.Floor},
		{name: "ceil", one: math.Ceil, limit: steps(math.Ceil), branch: math.Ceil},
		{name: "round", one: math.Round, limit: steps(math.Round), branch: math.Round},
		{name: "pow", two: elementary.Pow, limits: powerBounds},
		{name: "hypot", two: elementary.Hypot, limits: hypotBounds},
		{name: "mod", two: math.Mod, limits: remainderBounds, branches: times},
		{name: "float32", one: single, limit: everywhere(single)},
	}
}

// call1 and call2 return the node of a call.

func (f function) call1(a node) node {
	n := apply1(f.one, f.limit, a)
	if f.branch != nil {
		n.spot = func(s *spot) float64 {
			v := a.spot(s)
			s.decide(f.branch(v))
			return f.one(v)
		}
		n.narrow = narrowing1(f.call1, f.limit, a)
	}
	return n
}

func (f function) call2(a, b node) node {
	n := apply2(f.two, f.limits, a, b)
	if f.branches != nil {
		n.spot = func(s *spot) float64 {
			v, w := a.spot(s), b.spot(s)
			s.decide(f.branches(v, w))
			return f.two(v, w)
		}
		n.narrow = narrowing2(f.call2, f.limits, a, b)
	}
	return n
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

// comparison is a comparison of two numbers. holds returns 1 for true and 0 for false.
type comparison struct {
	holds    func(a, b float64) float64
	equality bool // == or !=
}

// comparisonOf returns the comparison of an operator.
func comparisonOf(operator string) comparison {
	switch operator {
	case "<":
		return comparison{holds: func(a, b float64) float64 { return truth(a < b) }}
	case "<=":
		return comparison{holds: func(a, b float64) float64 { return truth(a <= b) }}
	case ">":
		return comparison{holds: func(a, b float64) float64 { return truth(a > b) }}
	case ">=":
		return comparison{holds: func(a, b float64) float64 { return truth(a >= b) }}
	case "==":
		return comparison{func(a, b float64) float64 { return truth(a == b) }, true}
	}
	return comparison{func(a, b float64) float64 { return truth(a != b) }, true}
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
  --set problem.left='flux(2)'                      a du/dn = 2: what flows in
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
	sidesTake  = "a number, an expression, a NumPy array (.npy), periodic, neumann(g), flux(q) and robin(h, g)"
	valuesTake = "a number, an expression and a NumPy array (.npy)"
	fixedTakes = "a condition, such as hypot(x-0.5, y-0.5) < 0.2, a NumPy array (.npy) and a picture (" +
		imagefile.Endings + ")"
)
