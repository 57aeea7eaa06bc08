package problem

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"jacobi/configs"
	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// The names of sides with a derivative or a heat transfer (see configs.ParseSide).
const (
	neumann = "neumann"
	robin   = "robin"
)

// maxText bounds the length of an expression, and so the depth of the parser's recursion.
const maxText = 4096

// compiler turns the syntax tree of an expression into a node that evaluates a whole span of a row at once. That takes
// some ten nanoseconds a point; an interpreter that works point by point takes hundreds.
type compiler struct {
	mesh   solver.Mesh
	consts map[string]float64
	err    error // the first one
}

// compile parses and compiles text for a mesh with sides of the given lengths. All numbers are float64, including
// integers: 1/2 is 0.5. The value of the node is a number, or true or false.
func compile(text string, mesh solver.Mesh, width, height float64) (node, error) {
	if len(text) > maxText {
		return node{}, fmt.Errorf("%d characters; at most %d are allowed", len(text), maxText)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return node{}, syntax(text, err)
	}
	c := compiler{mesh: mesh, consts: map[string]float64{
		"pi": math.Pi, "e": math.E, "nx": float64(mesh.NX), "ny": float64(mesh.NY),
		"width": width, "height": height,
	}}
	n := c.node(tree.Node)
	return n, c.err
}

// compileNumber is compile for an expression whose value has to be a number.
func compileNumber(text string, mesh solver.Mesh, width, height float64) (node, error) {
	n, err := compile(text, mesh, width, height)
	if err == nil && n.isBool {
		err = errors.New("true or false is no number; write condition ? 1 : 0")
	}
	return n, err
}

func (c *compiler) fail(n ast.Node, format string, args ...any) node {
	if c.err == nil {
		c.err = fmt.Errorf("column %d: %s", n.Location().From+1, fmt.Sprintf(format, args...))
	}
	return node{eval: func(*span, []float64) {}}
}

// node compiles n. A constant expression is evaluated immediately.
func (c *compiler) node(n ast.Node) node {
	out := c.build(n)
	if c.err == nil && !out.onX && !out.onY {
		var v [1]float64
		out.fill(&span{}, v[:])
		out.eval = func(_ *span, dst []float64) { dst[0] = v[0] }
	}
	return out
}

func (c *compiler) build(n ast.Node) node {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return constant(float64(n.Value))
	case *ast.FloatNode:
		return constant(n.Value)
	case *ast.BoolNode:
		return compared(constant(truth(n.Value)))
	case *ast.IdentifierNode:
		return c.name(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		cond, yes, no := c.boolean(n.Cond), c.node(n.Exp1), c.node(n.Exp2)
		if yes.isBool != no.isBool {
			return c.fail(n, "one branch gives a number and the other true or false")
		}
		return choose(cond, yes, no)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(n, callee.Value, n.Arguments)
		}
		if name := member(n.Callee); isFunction(name) {
			return c.fail(n, "functions have no module; did you mean %s(…)?", name)
		}
	case *ast.MemberNode:
		if name := member(n); slices.Contains(Names(), name) {
			return c.fail(n, "names have no module; did you mean %s?", name)
		}
	case *ast.StringNode:
		return c.fail(n, "%s is text in quotes; an expression has none", n)
	}
	return c.fail(n, "%s is not supported in an expression", n)
}

// number and boolean compile an operand of the given kind.
func (c *compiler) number(n ast.Node) node {
	out := c.node(n)
	if out.isBool {
		return c.fail(n, "%s is true or false, not a number", n)
	}
	return out
}

func (c *compiler) boolean(n ast.Node) node {
	out := c.node(n)
	if !out.isBool {
		return c.fail(n, "%s is a number, not a condition such as x < 0.5", n)
	}
	return out
}

func (c *compiler) name(n *ast.IdentifierNode) node {
	nx, ny := intervals(c.mesh)
	switch n.Value {
	case "x":
		return column(func(ix float64) float64 { return ix / nx })
	case "y":
		return row(func(iy float64) float64 { return iy / ny })
	case "ix":
		return column(func(ix float64) float64 { return ix })
	case "iy":
		return row(func(iy float64) float64 { return iy })
	}
	if v, ok := c.consts[n.Value]; ok {
		return constant(v)
	}
	if n.Value == configs.Periodic {
		return c.fail(n, "periodic is allowed only as the whole value of problem.left, right, top or bottom")
	}
	if isFunction(n.Value) {
		return c.fail(n, "%s is a function; write %s(…)", n.Value, n.Value)
	}
	if why := absent(n.Value); why != "" {
		return c.fail(n, "unknown name %s: %s", n.Value, why)
	}
	known := slices.Concat(Names(), []string{configs.Periodic}, Functions())
	return c.fail(n, "unknown name %s; %s", n.Value, hint(n.Value, "names and functions", known))
}

// member returns the name behind the point of an expression such as math.sin, or "".
func member(n ast.Node) string {
	if m, ok := n.(*ast.MemberNode); ok {
		if property, ok := m.Property.(*ast.StringNode); ok {
			return property.Value
		}
	}
	return ""
}

// intervals returns by what ix and iy are divided for x and y: the intervals in the width and in the height.
func intervals(m solver.Mesh) (nx, ny float64) {
	return float64(solver.Intervals(m.NX, m.Walls.Left)), float64(solver.Intervals(m.NY, m.Walls.Top))
}

func (c *compiler) unary(n *ast.UnaryNode) node {
	switch n.Operator {
	case "+":
		return c.number(n.Node)
	case "-":
		return apply1(func(a float64) float64 { return -a }, c.number(n.Node))
	case "!", "not":
		return compared(apply1(func(a float64) float64 { return 1 - a }, c.boolean(n.Node)))
	}
	return c.fail(n, "operator %s is not supported in an expression", n.Operator)
}

func (c *compiler) binary(n *ast.BinaryNode) node {
	switch n.Operator {
	case "&&", "and":
		return compared(apply2(math.Min, c.boolean(n.Left), c.boolean(n.Right)))
	case "||", "or":
		return compared(apply2(math.Max, c.boolean(n.Left), c.boolean(n.Right)))
	}
	if op, ok := comparison(n.Operator); ok {
		return compared(apply2(op, c.number(n.Left), c.number(n.Right)))
	}
	switch n.Operator {
	case "+":
		return add(c.number(n.Left), c.number(n.Right))
	case "-":
		return subtract(c.number(n.Left), c.number(n.Right))
	case "*":
		return multiply(c.number(n.Left), c.number(n.Right))
	case "/":
		return apply2(func(a, b float64) float64 { return a / b }, c.number(n.Left), c.number(n.Right))
	case "%":
		return apply2(math.Mod, c.number(n.Left), c.number(n.Right))
	case "^", "**":
		return c.callsFunction(apply2(elementary.Pow, c.number(n.Left), c.number(n.Right)))
	}
	return c.fail(n, "operator %s is not supported in an expression", n.Operator)
}

func (c *compiler) call(n ast.Node, name string, list []ast.Node) node {
	if word := strings.ToLower(name); word == "where" || word == "iif" || word == "piecewise" || word == "heaviside" {
		return c.fail(n, "unknown function %s: %s", name, choice)
	}
	args := make([]node, len(list))
	for i, a := range list {
		args[i] = c.number(a)
	}
	if f, ok := unaryFunction(name); ok {
		if len(args) != 1 {
			return c.fail(n, "%s takes 1 argument, not %d", name, len(args))
		}
		return c.callsFunction(apply1(f, args[0]))
	}
	f, variadic, ok := binaryFunction(name)
	if name == neumann || name == robin {
		return c.fail(n, "%s(…) is allowed only as the whole value of problem.left, right, top or bottom", name)
	}
	if strings.EqualFold(name, "dirichlet") {
		return c.fail(n, "a side with given values has them as its value, without a function")
	}
	if !ok {
		return c.fail(n, "unknown function %s; %s", name, hint(name, "functions", append(Functions(), neumann, robin)))
	}
	if len(args) < 2 || len(args) > 2 && !variadic {
		atLeast := ""
		if variadic {
			atLeast = "at least "
		}
		return c.fail(n, "%s takes %s2 arguments, not %d", name, atLeast, len(args))
	}
	out := args[0]
	for _, a := range args[1:] {
		out = c.callsFunction(apply2(f, out, a))
	}
	return out
}

// callsFunction marks n as a node that calls a function.
func (c *compiler) callsFunction(n node) node {
	n.callColumns = c.mesh.NX
	return n
}
