package problem

import (
	"testing"

	"jacobi/solver"
)

func TestSyntaxIsExplained(t *testing.T) {
	for text, want := range map[string]string{
		"x = 0.5":       "column 3: = is not an operator; did you mean ==?",
		"x =< 0.5":      "column 3: =< is not an operator; did you mean <=?",
		"x <> 0.5":      "column 3: <> is not an operator; did you mean !=?",
		"x<1 & y<1":     "column 5: & is not an operator; did you mean &&?",
		"x<1 | y<1":     "column 5: | is not an operator; write || for or, and abs(…) for the absolute value",
		"x<1 AND y<1":   "column 5: AND is not an operator; did you mean and?",
		"y²":            "column 2: ² is not an operator; did you mean ^2?",
		"2y":            "column 1: 2y is not a number; did you mean 2*y?",
		"1 + 2.5pi*x":   "column 5: 2.5pi is not a number; did you mean 2.5*pi?",
		"1e-3y":         "column 1: 1e-3y is not a number; did you mean 1e-3*y?",
		"0x1g":          "column 1: 0x1g is not a number",
		"1e":            "column 1: 1e is not a number",
		"1__0":          "column 1: 1__0 is not a number",
		"1_":            "column 1: 1_ is not a number",
		"1.2.3":         "column 1: 1.2.3 is not a number",
		"1e999":         "column 1: 1e999 is too large",
		"'x":            "column 1: an expression has no text in quotes",
		"x ~ y":         "column 3: ~ is not allowed in an expression",
		"x if y else 1": "column 3: a choice is written condition ? value : value",
		"x < 1 ? 2":     "column 7: a choice is written condition ? value : value",
		"x < 1 ? 2 :":   "column 11: a value is missing after :",
		"sin(":          "column 4: a value is missing after (",
		"sin((x)":       "column 4: this ( is not closed",
		"x)":            "column 2: this ) has no (",
		"()":            "column 2: a value is missing before )",
		"* x":           "column 1: a value is missing before *",
		"1 +":           "column 3: a value is missing after +",
		"not":           "column 1: a value is missing after not",
		"sin x":         "column 5: sin takes its arguments in parentheses: sin(…)",
		"(x+1)(y+1)":    "column 6: an operator, such as *, is missing before (",
		"1 x":           "column 3: an operator, such as *, is missing before x",
		"0,5*x":         "column 2: a comma stands only between the arguments of a function; is 0.5 meant?",
		" ":             "a number or an expression is missing",
		"(x<1 ? 2)":     "column 6: a choice is written condition ? value : value",
		"max(x<1 ? y)":  "column 9: a choice is written condition ? value : value",
		"x<1 ? 2) : 3":  "column 8: this ) has no (",
		"x<1 ? (1 : 2)": "column 7: this ( is not closed",
		"x<1?1:2:3":     "column 8: this : has no ?",
		"x<1 not y<1":   "column 5: an operator, such as and, is missing before not",
		"5!":            "column 2: an operator, such as and, is missing before !",
		"(x).y":         "column 4: . is not expected here",
		"x . 5":         "column 5: 5 is not expected here",
		"1.5,2.5":       "column 4: a comma stands only between the arguments of a function",
		"1.5 2.5":       "column 5: a number has no spaces",
		"1,000,000":     "column 2: a number has no commas",
		"1 000":         "column 3: a number has no spaces; is 1000 meant?",
		"5 mm":          "column 3: an operator, such as *, is missing before mm; numbers have no units",
		"(x ) and y<1":  "column 1: (x ) is a number, not a condition such as x < 0.5",
		"αβ = 1":        "column 4: = is not an operator; did you mean ==?",
		"1_000 x":       "column 7: an operator, such as *, is missing before x",
	} {
		if _, err := compile(text, solver.Mesh{NX: 9, NY: 5}, 1, 1); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// A name that no expression has suggests the one that was meant.
func TestWordsOfOtherLanguages(t *testing.T) {
	for text, want := range map[string]string{
		"neuman(0)":    "unknown function neuman; did you mean neumann?",
		"Neumann(0)":   "unknown function Neumann; did you mean neumann?",
		"peridic":      "unknown name peridic; did you mean periodic?",
		"1 + periodic": "periodic is allowed only as the whole value of problem.left, right, top or bottom",
		"dirichlet(1)": "a side with given values has them as its value, without a function",
		"ln(x)":        "unknown function ln; did you mean log?",
		"log2(x)":      "unknown function log2; did you mean log(…)/log(2)?",
		"arctan(x)":    "unknown function arctan; did you mean atan?",
		"PI":           "unknown name PI; did you mean pi?",
		"True":         "unknown name True; did you mean true?",
		"π":            "unknown name π; did you mean pi?",
		"Sin(x)":       "unknown function Sin; did you mean sin?",
		"r":            "unknown name r; launcher help expressions lists the names and functions",
	} {
		_, err := compile(text, solver.Mesh{NX: 9, NY: 5}, 1, 1)
		if err == nil || err.Error()[len("column 1: "):] != want {
			t.Errorf("%s:\ngot  %v\nwant column N: %s", text, err, want)
		}
	}
}
