package configs

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"jacobi/solver"
)

// Periodic, as two opposite sides of a problem, continues the mesh at the opposite side: row 0 is a copy of row ny-2
// and row ny-1 one of row 1, or column 0 is a copy of column nx-2 and column nx-1 one of column 1.
const Periodic = "periodic"

// The names of walls with a given derivative, and with a heat transfer.
const (
	neumann = "neumann"
	robin   = "robin"
)

// Side is one side of a problem.
type Side struct {
	Wall solver.Wall // Neumann also for a Robin wall
	// Text is the expression of a fixed wall's values, of a Neumann wall's outward normal derivative g, or of the g of
	// a Robin wall.
	Text string
	// Transfer is the expression of h of a Robin wall, a du/dn + h u = g; "" for other walls.
	Transfer string
}

// ParseSide parses the value of problem.left, right, top or bottom: periodic, neumann(g), robin(h, g), or an
// expression.
func ParseSide(text string) (Side, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == Periodic {
		return Side{Wall: solver.Periodic}, nil
	}
	if rest, ok := strings.CutPrefix(trimmed, neumann); ok {
		args, err := arguments(neumann, rest)
		if err != nil || len(args) != 1 || args[0] == "" {
			return Side{}, cmp.Or(err, errors.New("neumann takes the outward derivative in parentheses; neumann(0) "+
				"insulates"))
		}
		return Side{Wall: solver.Neumann, Text: args[0]}, nil
	}
	if rest, ok := strings.CutPrefix(trimmed, robin); ok {
		args, err := arguments(robin, rest)
		if err != nil || len(args) != 2 || args[0] == "" || args[1] == "" {
			return Side{}, cmp.Or(err, errors.New("robin takes h and g of a du/dn + h u = g in parentheses, as in "+
				"robin(2, 0)"))
		}
		return Side{Wall: solver.Neumann, Text: args[1], Transfer: args[0]}, nil
	}
	return Side{Wall: solver.Dirichlet, Text: text}, nil
}

// arguments returns what stands in parentheses after the name of a wall, divided at its own commas; none if there are
// no parentheses.
func arguments(name, text string) (args []string, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "(")
	if !ok {
		return nil, nil
	}
	depth, from := 1, 0
	for i, r := range rest {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 1 && r == ',' || depth == 0 {
			args, from = append(args, strings.TrimSpace(rest[from:i])), i+1
		}
		if depth > 0 {
			continue
		}
		if after := strings.TrimSpace(rest[i+1:]); after != "" {
			return nil, fmt.Errorf("%q after the parenthesis that closes %s(…); nothing may follow it", after, name)
		}
		return args, nil
	}
	return nil, fmt.Errorf("the parenthesis after %s is not closed", name)
}

// Walls returns the conditions on all sides; dtype is the type of the field. The error has a line for each fault.
func (p Problem) Walls(dtype string) (solver.Walls, error) {
	p, err := p.Resolve(dtype)
	if err != nil {
		return solver.Walls{}, err
	}
	var walls solver.Walls
	var faults []error
	for _, side := range []struct {
		key, text string
		wall      *solver.Wall
	}{
		{"problem.left", p.Left, &walls.Left}, {"problem.right", p.Right, &walls.Right},
		{"problem.top", p.Top, &walls.Top}, {"problem.bottom", p.Bottom, &walls.Bottom},
	} {
		s, err := ParseSide(side.text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", side.key, side.text, err))
		}
		*side.wall = s.Wall
	}
	pair := func(a, b, first, second string) {
		if faults == nil && (strings.TrimSpace(first) == Periodic) != (strings.TrimSpace(second) == Periodic) {
			rest := "with preset " + p.Preset
			if p.Preset == "" {
				rest = "a side that is left out is 0"
			}
			faults = append(faults, fmt.Errorf("problem.%s %q and problem.%s %q (%s): both or neither can be periodic",
				a, first, b, second, rest))
		}
	}
	pair("left", "right", p.Left, p.Right)
	pair("top", "bottom", p.Top, p.Bottom)
	if faults != nil {
		return solver.Walls{}, errors.Join(faults...)
	}
	return walls, nil
}

// Weighted returns the first key, with its value, that gives points weights of their own (see solver.Operator); "" if
// none does: the coefficient and the screening are numbers, no side is a robin(h, g) and no colour has a coefficient.
func (p Problem) Weighted() (key, value string) {
	for _, k := range []struct{ key, value string }{{"problem.coefficient", p.Coefficient},
		{"problem.screening", p.Screening}} {
		if _, number := Number(k.value); k.value != "" && !number {
			return k.key, k.value
		}
	}
	if p.drawsCoefficients() {
		return "problem.colours", p.Colours
	}
	for _, k := range []struct{ key, value string }{{"problem.left", p.Left}, {"problem.right", p.Right},
		{"problem.top", p.Top}, {"problem.bottom", p.Bottom}} {
		if s, err := ParseSide(k.value); err == nil && s.Transfer != "" {
			return k.key, k.value
		}
	}
	return "", ""
}

// drawsCoefficients reports whether a colour of the drawing has a coefficient.
func (p Problem) drawsCoefficients() bool { return strings.Contains(p.Colours, "coefficient=") }

// weighted refuses a start that has no weights of points.
func (v *validator) weighted(c Config) {
	if key, value := c.Problem.Weighted(); key != "" && c.Solver.FullStart() {
		v.fault("%s %q: needs solver.start %s, not %s", key, value, StartInitial, StartFull)
	}
}
