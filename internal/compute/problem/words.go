package problem

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

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

// hint suggests the known word that was most likely meant by word. kind is what the known words are.
func hint(word, kind string, known []string) string {
	if better := otherNames()[strings.ToLower(word)]; better != "" {
		return "did you mean " + better + "?"
	}
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return "did you mean " + k + "?"
		}
	}
	// A single letter is as near to every other one.
	if near, ok := suggest.Nearest(word, known); ok && utf8.RuneCountInString(word) > 1 {
		return "did you mean " + near + "?"
	}
	return "launcher help expressions lists the " + kind
}

// otherNames returns what expressions call the functions and constants of other languages, by their names there.
func otherNames() map[string]string {
	return map[string]string{
		"ln": "log", "log2": "log(…)/log(2)", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
		"arctan2": "atan2",
		"tg":      "tan", "sh": "sinh", "ch": "cosh", "th": "tanh", "power": "pow", "fmod": "mod", "ceiling": "ceil",
		"π": "pi", "m_pi": "pi", "i": "ix", "j": "iy", "lx": "width", "ly": "height",
	}
}

// absent says why expressions have no such name, or "".
func absent(name string) string {
	switch strings.ToLower(name) {
	case "z", "iz", "nz":
		return "the mesh has two dimensions, x and y"
	case "t", "time", "dt":
		return "the field is steady and has no time"
	case "u", "phi", "v":
		return "the field itself cannot stand in an expression"
	case "nan", "inf", "infinity":
		return "values must be finite numbers"
	}
	return ""
}

// fileName matches text that no expression is but that may be the name of a file.
var fileName = regexp.MustCompile(`^[^()<>=*?]*(\.[A-Za-z][A-Za-z0-9]*)$`)

// orFile returns err, which says why text is not an expression, or if text seems to name a file which kinds are read.
func orFile(text, kinds string, err error) error {
	m := fileName.FindStringSubmatch(text)
	if err == nil || m == nil {
		return err
	}
	return fmt.Errorf("a file of kind %s cannot be read; it must be %s", m[1], kinds)
}

// Kinds of files, for messages.
const (
	npyKind = "a NumPy array (.npy)"
	pngKind = "a PNG picture (.png)"
)
