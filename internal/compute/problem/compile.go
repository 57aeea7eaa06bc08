package problem

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// maxText bounds the length of an expression, and so the depth of the parser's recursion.
const maxText = 4096

// compiler parses an expression and turns it into a node that evaluates a whole span of a row at once. That takes some
// ten nanoseconds a point; an interpreter that works point by point takes hundreds.
type compiler struct {
	mesh   solver.Mesh
	consts map[string]float64
	text   string
	tokens []token
	next   int   // index of the next token
	err    error // the first one
	// indexed says that the expression names ix, iy, nx or ny.
	indexed bool
}

// compile parses and compiles text for a mesh with sides of the given lengths. All numbers are float64, including
// integers: 1/2 is 0.5. The value of the node is a number, or true or false.
func compile(text string, mesh solver.Mesh, width, height float64) (node, error) {
	if len(text) > maxText {
		return node{}, fmt.Errorf("%d characters; at most %d are allowed", len(text), maxText)
	}
	list, err := tokens(text)
	if err != nil {
		return node{}, err
	}
	c := compiler{mesh: mesh, text: text, tokens: list, consts: map[string]float64{
		"pi": math.Pi, "e": math.E, "nx": float64(mesh.NX), "ny": float64(mesh.NY),
		"width": width, "height": height,
	}}
	out := c.expression()
	if c.next < len(list) {
		c.unexpected()
	}
	out.indexed = c.indexed
	return out.node, c.err
}

// compileNumber is compile for an expression whose value has to be a number. The error ends with what else is allowed.
func compileNumber(text string, mesh solver.Mesh, width, height float64, allowed string) (node, error) {
	n, err := compile(text, mesh, width, height)
	if err == nil && n.isBool {
		err = errors.New("it is a condition, not a number")
	}
	return n, allow(err, allowed)
}

// allow returns err with what the key takes, unless it asks whether the nearest name was meant.
func allow(err error, allowed string) error {
	if err == nil || strings.HasSuffix(err.Error(), "?") {
		return err
	}
	return fmt.Errorf("%w; allowed are %s", err, allowed)
}

func (c *compiler) fail(at token, format string, args ...any) node {
	if c.err == nil {
		c.err = fmt.Errorf("column %d: %s", at.column, fmt.Sprintf(format, args...))
	}
	return constant(0)
}

// folded returns n. A constant expression is evaluated immediately.
func (c *compiler) folded(n node) node {
	if !n.onX && !n.onY {
		value := constant(n.at(&span{}, 0, 0))
		n.eval, n.spot, n.limit, n.narrow = value.eval, value.spot, value.limit, nil
	}
	return n
}

// number and boolean return the node of an operand of the given kind.
func (c *compiler) number(o operand) node {
	if o.isBool {
		return c.fail(o.first, "%s is true or false, not a number", c.text[o.first.start:o.end])
	}
	return o.node
}

func (c *compiler) boolean(o operand) node {
	if !o.isBool {
		return c.fail(o.first, "%s is a number, not a condition such as x < 0.5", c.text[o.first.start:o.end])
	}
	return o.node
}

func (c *compiler) name(t token) node {
	nx, ny := intervals(c.mesh)
	across, down := axes(c.mesh)
	c.indexed = c.indexed || slices.Contains([]string{"ix", "iy", "nx", "ny"}, t.text)
	switch t.text {
	case "true", "false":
		return compared(constant(truth(t.text == "true")))
	case "x":
		return column(across, nx)
	case "y":
		return row(down, ny)
	case "ix":
		return column(across, 1)
	case "iy":
		return row(down, 1)
	}
	if v, ok := c.consts[t.text]; ok {
		return constant(v)
	}
	if _, ok := functionOf(t.text); ok {
		return c.fail(t, "%s is a function: its arguments stand in parentheses", t.text)
	}
	return c.fail(t, "unknown name %s; %s", t.text, hint(t.text, slices.Concat(Names(), Functions())))
}

// intervals returns by what ix and iy are divided for x and y: the intervals in the width and in the height.
func intervals(m solver.Mesh) (nx, ny float64) {
	return float64(solver.Intervals(m.NX, m.Walls.Left)), float64(solver.Intervals(m.NY, m.Walls.Top))
}

// binary compiles an operator between two values other than a comparison.
func (c *compiler) binary(operator string, left, right operand) node {
	switch operator {
	case "&&", "and":
		return logical(math.Min, minBounds, 1, c.boolean(left), c.boolean(right))
	case "||", "or":
		return logical(math.Max, maxBounds, 0, c.boolean(left), c.boolean(right))
	}
	a, b := c.number(left), c.number(right)
	switch operator {
	case "+":
		return add(a, b)
	case "-":
		return subtract(a, b)
	case "*":
		return multiply(a, b)
	case "/":
		return apply2(func(a, b float64) float64 { return a / b }, quotientBounds, a, b)
	case "%":
		f, _ := functionOf("mod")
		return f.call2(a, b)
	}
	return c.callsFunction(apply2(elementary.Pow, powerBounds, a, b)) // ^ and **
}

func (c *compiler) call(t token, list []operand) node {
	name := t.text
	args := make([]node, len(list))
	for i, a := range list {
		args[i] = c.number(a)
	}
	f, ok := functionOf(name)
	switch {
	case !ok:
		return c.fail(t, "unknown function %s; %s", name, hint(name, Functions()))
	case f.one != nil && len(args) != 1:
		return c.fail(t, "%s takes 1 argument, not %d", name, len(args))
	case f.one != nil:
		return c.callsFunction(f.call1(args[0]))
	case f.variadic && len(args) < 2:
		return c.fail(t, "%s takes at least 2 arguments, not %d", name, len(args))
	case !f.variadic && len(args) != 2:
		return c.fail(t, "%s takes 2 arguments, not %d", name, len(args))
	}
	out := args[0]
	for _, a := range args[1:] {
		out = c.callsFunction(f.call2(out, a))
	}
	return out
}

// callsFunction marks n as a node that calls a function.
func (c *compiler) callsFunction(n node) node {
	n.callColumns = c.mesh.NX
	return n
}
