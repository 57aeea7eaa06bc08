package configs

import "strings"

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
