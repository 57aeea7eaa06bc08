package configs

import (
	"errors"
	"fmt"
	"strings"

	"jacobi/solver"
)

// Periodic, as two opposite sides of a problem, continues the mesh at the opposite side: row 0 is a copy of row ny-2
// and row ny-1 one of row 1, or column 0 is a copy of column nx-2 and column nx-1 one of column 1.
const Periodic = "periodic"

// neumann is the name of a wall with a given derivative.
const neumann = "neumann"

// Side is one side of a problem.
type Side struct {
	Wall solver.Wall
	// Text is the expression of a fixed wall's values, or of a Neumann wall's outward normal derivative.
	Text string
}

// ParseSide parses the value of problem.left, right, top or bottom: periodic, neumann(expression), or an expression.
func ParseSide(text string) (Side, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == Periodic {
		return Side{Wall: solver.Periodic}, nil
	}
	rest, ok := strings.CutPrefix(trimmed, neumann)
	if !ok {
		return Side{Wall: solver.Dirichlet, Text: text}, nil
	}
	rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "(")
	if !ok {
		return Side{}, errors.New("neumann takes the outward derivative in parentheses; neumann(0) insulates")
	}
	depth := 1
	for i, r := range rest {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth > 0 {
			continue
		}
		if after := strings.TrimSpace(rest[i+1:]); after != "" {
			return Side{}, fmt.Errorf("%q after the parenthesis that closes neumann(…); nothing may follow it", after)
		}
		if strings.TrimSpace(rest[:i]) == "" {
			return Side{}, errors.New("neumann() without a derivative; neumann(0) insulates")
		}
		return Side{Wall: solver.Neumann, Text: rest[:i]}, nil
	}
	return Side{}, errors.New("the parenthesis after neumann is not closed")
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
