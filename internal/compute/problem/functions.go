package problem

import (
	"math"

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
