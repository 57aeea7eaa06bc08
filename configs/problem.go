package configs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"jacobi/solver"
)

// Title names the problem: by its preset, or by its equation.
func (p Problem) Title() string {
	title := "Laplace equation"
	switch {
	case p.Preset != "":
		return p.Preset
	case p.Screening != "" && p.Screening != "0":
		title = "screened Poisson equation"
	case p.Source != "" && p.Source != "0":
		title = "Poisson equation"
	}
	if p.Coefficient != "" && p.Coefficient != "1" || strings.Contains(p.Colours, "coefficient=") {
		title += " with a coefficient"
	}
	return title
}

// Resolve returns p with the preset's values for its empty strings; dtype is the type of the field.
func (p Problem) Resolve(dtype string) (Problem, error) {
	var base Problem
	switch p.Preset {
	case "gtc2019":
		// NVIDIA's sample computes with a pi of the field's type, and its norms depend on it.
		side := "sin(2 * float32(pi) * iy / (ny - 1))"
		if dtype == "float64" {
			side = "sin(2 * pi * iy / (ny - 1))"
		}
		base = Problem{Left: side, Right: side, Top: Periodic, Bottom: Periodic, Initial: "0"}
	case "":
		base = Problem{Left: "0", Right: "0", Top: "0", Bottom: "0", Initial: "0"}
	case "dirichlet":
		base = Problem{Left: "0", Right: "0", Top: "1", Bottom: "0", Initial: "0"}
	default:
		return Problem{}, fmt.Errorf("problem.preset %q: allowed are gtc2019 and dirichlet; a problem of your own has "+
			"none", p.Preset)
	}
	fill := func(s *string, preset string) {
		if *s == "" {
			*s = preset
		}
	}
	fill(&p.Left, base.Left)
	fill(&p.Right, base.Right)
	fill(&p.Top, base.Top)
	fill(&p.Bottom, base.Bottom)
	fill(&p.Initial, base.Initial)
	fill(&p.Source, "0")
	fill(&p.Fixed, "false")
	fill(&p.Coefficient, "1")
	fill(&p.Screening, "0")
	return p, nil
}

// Periodic, as two opposite sides of a problem, continues the mesh at the opposite side: row 0 is a copy of row ny-2
// and row ny-1 one of row 1, or column 0 is a copy of column nx-2 and column nx-1 one of column 1.
const Periodic = "periodic"

// The names of walls with a given derivative, with a given flux, and with a heat transfer.
const (
	neumann = "neumann"
	flux    = "flux"
	robin   = "robin"
)

// Side is one side of a problem.
type Side struct {
	Wall solver.Wall // Neumann also for a Robin wall
	// Text is the expression of a fixed wall's values, of a Neumann wall's outward normal derivative g, or of the g of
	// a Robin wall.
	Text string
	// Transfer is the expression of h of a Robin wall, a du/dn + h u = g; "0" for flux(g), and "" for other walls.
	Transfer string
}

// ParseSide parses the value of problem.left, right, top or bottom: periodic, neumann(g), flux(q), robin(h, g), or
// an expression.
func ParseSide(text string) (Side, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == Periodic {
		return Side{Wall: solver.Periodic}, nil
	}
	name, rest, _ := strings.Cut(trimmed, "(")
	args, closed := arguments(rest)
	switch strings.TrimSpace(name) {
	case neumann:
		if !closed || len(args) != 1 || args[0] == "" {
			return Side{}, errors.New("must be neumann(g) with the outward derivative g")
		}
		return Side{Wall: solver.Neumann, Text: args[0]}, nil
	case flux:
		if !closed || len(args) != 1 || args[0] == "" {
			return Side{}, errors.New("must be flux(q) with the inward flux q = a du/dn")
		}
		return Side{Wall: solver.Neumann, Text: args[0], Transfer: "0"}, nil
	case robin:
		if !closed || len(args) != 2 || args[0] == "" || args[1] == "" {
			return Side{}, errors.New("must be robin(h, g) with h and g of a du/dn + h u = g")
		}
		return Side{Wall: solver.Neumann, Text: args[1], Transfer: args[0]}, nil
	}
	return Side{Wall: solver.Dirichlet, Text: text}, nil
}

// arguments returns what stands in text before the parenthesis that ends it, divided at its own commas. closed reports
// whether that parenthesis closes the one before text.
func arguments(text string) (args []string, closed bool) {
	depth, from := 1, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 1 && r == ',' || depth == 0 {
			args, from = append(args, strings.TrimSpace(text[from:i])), i+1
		}
		if depth == 0 {
			return args, strings.TrimSpace(text[from:]) == ""
		}
	}
	return nil, false
}

// Walls returns the conditions on all sides; dtype is the type of the field. The error has a line for each fault.
func (p Problem) Walls(dtype string) (solver.Walls, error) {
	p, err := p.Resolve(dtype)
	if err != nil {
		return solver.Walls{}, err
	}
	var walls solver.Walls
	var faults []error
	at := []*solver.Wall{&walls.Left, &walls.Right, &walls.Top, &walls.Bottom}
	sides := p.sides()
	for i, side := range sides {
		s, err := ParseSide(side.text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", side.key, side.text, err))
		}
		*at[i] = s.Wall
	}
	for i := 0; faults == nil && i < len(sides); i += 2 {
		if a, b := sides[i], sides[i+1]; (*at[i] == solver.Periodic) != (*at[i+1] == solver.Periodic) {
			return walls, fmt.Errorf("%s %q and %s %q: both or neither can be periodic", a.key, a.text, b.key, b.text)
		}
	}
	return walls, errors.Join(faults...)
}

// namedText is the value of a key.
type namedText struct{ key, text string }

// sides returns the sides, opposite ones after each other.
func (p Problem) sides() []namedText {
	return []namedText{{"problem.left", p.Left}, {"problem.right", p.Right}, {"problem.top", p.Top},
		{"problem.bottom", p.Bottom}}
}

// Colour is the meaning of one colour of a drawing. Areas of a colour without a value are free.
type Colour struct {
	RGB         [3]uint8
	Name        string
	Value       *float64 // that it keeps; nil if it is free
	Floating    *float64 // as of a Region
	Coefficient *float64 // of the material; nil: 1
}

// String returns the colour as in #b87333.
func (c Colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c.RGB[0], c.RGB[1], c.RGB[2]) }

// Title returns the name, or the colour where there is none.
func (c Colour) Title() string {
	if c.Name != "" {
		return c.Name
	}
	return c.String()
}

// maxColours bounds the colours of a drawing: a byte for each of its pixels tells them apart.
const maxColours = 255

var (
	colourText = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)
	isName     = regexp.MustCompile(`^` + shortName + `$`)
)

// ParseColours reads the value of problem.colours: colours with semicolons between them, each followed by what it
// means. Commas may stand where spaces may.
//
//	#b87333 name=strip value=1; #1565c0 value=0; #2e7d32 coefficient=4.4; #ffffff
func ParseColours(text string) (all []Colour, err error) {
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ";") {
		fields := strings.FieldsFunc(item, func(r rune) bool { return unicode.IsSpace(r) || r == ',' })
		c, err := parseColour(fields)
		for _, key := range []string{c.String(), c.Name} {
			if err == nil && key != "" && seen[key] {
				err = fmt.Errorf("%s is given twice", key)
			}
			seen[key] = true
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(item), err)
		}
		if all = append(all, c); len(all) > maxColours {
			return nil, fmt.Errorf("at most %d colours are allowed", maxColours)
		}
	}
	return all, nil
}

// parseColour reads a colour and its attributes.
func parseColour(fields []string) (c Colour, err error) {
	if len(fields) == 0 || !colourText.MatchString(fields[0]) {
		return c, errors.New("must begin with a colour, as in #b87333 name=strip value=1")
	}
	if _, err := fmt.Sscanf(fields[0], "#%02x%02x%02x", &c.RGB[0], &c.RGB[1], &c.RGB[2]); err != nil {
		return c, err
	}
	err = attributes(fields[1:], map[string]func(string) bool{
		"name":  c.setName,
		"value": func(text string) bool { return setValue(&c.Value, &c.Floating, text) },
		"coefficient": func(text string) bool {
			return setNumber(&c.Coefficient, text) && (*c.Coefficient == 0 || *c.Coefficient >= LeastCoefficient &&
				*c.Coefficient <= MostCoefficient)
		},
	}, fmt.Sprintf("name=NAME of at most 64 letters, digits, ., - and _, value=NUMBER, value=floating, "+
		"value=floating(FLUX) and coefficient=NUMBER, 0 or %g to %g", LeastCoefficient, MostCoefficient))
	return c, err
}

// setName sets the name, if it is one.
func (c *Colour) setName(name string) bool {
	c.Name = name
	return isName.MatchString(name)
}
