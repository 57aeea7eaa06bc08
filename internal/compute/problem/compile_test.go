package problem

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

func TestExpressions(t *testing.T) {
	// Expressions are evaluated at column 3 of 9, row 2 of 5: x = 0.375, y = 0.5.
	mesh := solver.Mesh{NX: 9, NY: 5, DType: solver.Float64}
	x, y := 0.375, 0.5
	nested := "x" // takes days if it takes twice as long with each comparison around it
	for range 50 {
		nested = "(0 < " + nested + " < 1 ? 0.5 : 2)"
	}
	for text, want := range map[string]float64{
		"1/2": 0.5, "7 % 4": 3, "-7 % 4": -3, "2^10": 1024, "2**-1": 0.5, "-2^2": -4, "1e-3": 1e-3, ".5": 0.5,
		"9223372036854775807 + 1": 9223372036854775808, "4611686018427387904 * 4": 18446744073709551616,
		"x": x, "y": y, "ix": 3, "iy": 2, "nx": 9, "ny": 5, "pi": math.Pi, "e": math.E,
		"sin(x)": elementary.Sin(x), "cos(x)": elementary.Cos(x), "tan(x)": elementary.Tan(x),
		"asin(x)": elementary.Asin(x), "acos(x)": elementary.Acos(x), "atan(x)": elementary.Atan(x),
		"sinh(x)": elementary.Sinh(x), "cosh(x)": elementary.Cosh(x), "tanh(x)": elementary.Tanh(x),
		"exp(x)": elementary.Exp(x), "log(x)": elementary.Log(x), "log10(x)": elementary.Log10(x),
		"atan2(x, y)": elementary.Atan2(x, y), "sqrt(x)": math.Sqrt(x), "cbrt(x)": elementary.Cbrt(x), "abs(-x)": x,
		"min(x, y)": x, "max(x, y, 2)": 2, "min(3, x, 1, y)": x,
		"floor(-1.5)": -2, "ceil(1.2)": 2, "round(2.5)": 3, "pow(x, 2)": 0.140625, "hypot(3, 4)": 5, "mod(ix, 2)": 1,
		"float32(pi)":   float64(float32(math.Pi)),
		"x < y ? 1 : 2": 1, "x >= y ? 1 : 2": 2, "x == 0.375 ? 10 : 20": 10, "x != 0.375 ? 10 : 20": 20,
		"x <= y ? x : y": x, "x > y ? x : y": y,
		nested: 0.5, "1 < x < 5 ? 1 : 0": 0, "0.1 < x < 0.3 < y ? 1 : 0": 0, "0 < y <= 1 ? 1 : 0": 1,
		"0.25 < x < 0.5 ? 1 : 0": 1, "x < 0.1 or y == 0.5 ? 1 : 0": 1, "x < 0.1 && y == 0.5 ? 1 : 0": 0,
		"not (x < 0.1) ? 1 : 0": 1, "!(x < 0.1) ? 1 : 0": 1, "not x < 0.1 and not y < 0.1 ? 1 : 0": 1,
		"2^3^2": 512, "2^-x^2": elementary.Pow(2, -elementary.Pow(x, 2)), "-2*-3": 6,
		"99999999999999999999": 1e20, "x < 1 ? y < 1 ? 5 : 6 : 7": 5, "y > 1 ? 5 : x > 1 ? 6 : 7": 7,
		"0.25 < x == 0.375 ? 1 : 0": 1,
		"x == 0.375 < 0.3 ? 1 : 0":  0, "x != y == 0.5 ? 1 : 0": 1, "(ix + iy) % 2 == 0 ? 1 : -1": -1,
		"x == 0.375 ? 4 : 1 / 0": 4, "true ? 1 : 0": 1, "(x < y ? y < x : true) ? 1 : 0": 0,
		"x - y - 1": -1.125, "x / y / 2": 0.375, "1 - (2 - (3 - (4 - x)))": 1 - (2 - (3 - (4 - x))), "+x": x,
		"width": 3, "height": 0.5,
	} {
		n, err := compile(text, mesh, 3, 0.5)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := n.at(&span{}, 2, 3); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		// The value is the same as part of a span of several columns.
		var columns [5]float64
		n.fill(&span{row: 2, col: 1}, columns[:])
		if columns[2] != want {
			t.Errorf("%s in a span: %v, want %v", text, columns[2], want)
		}
	}
}

// The help text and the documentation name every function and value, and each of them compiles.
func TestWordsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{Help(), string(doc)} {
		for _, w := range slices.Concat(Names(), Functions()) {
			if !regexp.MustCompile(`\b` + w + `\b`).MatchString(text) {
				t.Errorf("%s is missing in\n%s", w, text)
			}
		}
	}
	for _, w := range Names() {
		if _, err := compile(w, solver.Mesh{NX: 8, NY: 8}, 1, 1); err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
	for _, w := range Functions() {
		_, one := compile(w+"(1)", solver.Mesh{NX: 8, NY: 8}, 1, 1)
		_, two := compile(w+"(1, 1)", solver.Mesh{NX: 8, NY: 8}, 1, 1)
		if (one == nil) == (two == nil) {
			t.Errorf("%s: with one argument: %v; with two: %v", w, one, two)
		}
	}
}

// What is no expression is refused with its column, the nearest name, and what its key takes.
func TestBadExpressions(t *testing.T) {
	const help = "launcher help expressions lists all"
	for text, want := range map[string]string{
		"":                  "a number or an expression is missing",
		" ":                 "a number or an expression is missing",
		"siny":              "column 1: unknown name siny; did you mean sin?",
		"1 + zeta":          "column 5: unknown name zeta; " + help,
		"αβ + sinn(x)":      "column 1: unknown name αβ; " + help,
		"sine(x)":           "column 1: unknown function sine; did you mean sin?",
		"x(1)":              "column 1: unknown function x; " + help,
		"neumann(0)":        "column 1: unknown function neumann; " + help,
		"2 * sin":           "column 5: sin is a function: its arguments stand in parentheses",
		"sin(x, y)":         "column 1: sin takes 1 argument, not 2",
		"pow(1, 2, 3)":      "column 1: pow takes 2 arguments, not 3",
		"max(x)":            "column 1: max takes at least 2 arguments, not 1",
		"x > 0.5":           "it is a condition, not a number",
		"1 + (x > 0)":       "column 5: (x > 0) is true or false, not a number",
		"(x ) and y<1":      "column 1: (x ) is a number, not a condition such as x < 0.5",
		"x < 1 ? 1 : y < 1": "column 7: one branch gives a number and the other true or false",
		"2pi*x":             "column 1: 2pi must be a number that a float64 holds",
		"1 + 1e-3y":         "column 5: 1e-3y must be a number that a float64 holds",
		"1__0":              "column 1: 1__0 must be a number that a float64 holds",
		"1..5":              "column 1: 1..5 must be a number that a float64 holds",
		"1e999":             "column 1: 1e999 must be a number that a float64 holds",
		"x - 1e-400":        "column 5: 1e-400 must be a number that a float64 holds",
		"x = 0.5":           "column 3: = is not allowed in an expression",
		"y²":                "column 2: ² is not allowed in an expression",
		"1,5":               "column 2: , is not expected here",
		"sin(x y)":          "column 7: y is not expected here",
		"max(x,, y)":        "column 7: , is not expected here",
		"x)":                "column 2: ) is not expected here",
		"()":                "column 2: ) is not expected here",
		"* x":               "column 1: * is not expected here",
		"x < 1 : 2":         "column 7: : is not expected here",
		"x<1 ? (1 : 2)":     "column 10: : is not expected here",
		"1 +":               "column 4: the expression ends too early",
		"sin((x)":           "column 8: the expression ends too early",
		"x < 1 ? 2":         "column 10: the expression ends too early",
		"not":               "column 4: the expression ends too early",

		strings.Repeat("1+", 3000) + "1": "6001 characters; at most 4096 are allowed",
	} {
		_, err := compileNumber(text, solver.Mesh{NX: 9, NY: 5, DType: solver.Float64}, 1, 1, "numbers")
		if !strings.HasSuffix(want, "?") {
			want += "; allowed are numbers"
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{"sin(2 * float32(pi) * iy / (ny - 1))", "x < 0.5 ? min(x, y, 1) : -x^2",
		"not (x > y) and true", "((1", "a.b[0]", "x ?? y"} {
		f.Add(s)
	}
	mesh := solver.Mesh{NX: 9, NY: 5, DType: solver.Float64}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := compile(text, mesh, 3, 0.5)
		if err != nil {
			return
		}
		var row [7]float64
		n.fill(&span{row: 2, col: 1}, row[:])
		for i, v := range row {
			if one := n.at(&span{}, 2, 1+i); one != v && one == one {
				t.Errorf("%s at column %d: %v alone, %v in a span", text, 1+i, one, v)
			}
		}
	})
}
