package configs

import "fmt"

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
	if p.Coefficient != "" && p.Coefficient != "1" || p.drawsCoefficients() {
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
