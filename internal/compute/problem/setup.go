package problem

import (
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"jacobi/internal/base/show"
)

// Setup describes a problem for the dry run, the summary and the report.
type Setup struct {
	Left        string `json:"left"` // as in the run file, or from the preset
	Right       string `json:"right"`
	Top         string `json:"top"`
	Bottom      string `json:"bottom"`
	Axis        string `json:"axis,omitempty"` // the side that is the axis of a body of revolution
	Initial     string `json:"initial"`
	Source      string `json:"source"`              // "0" for none
	Fixed       string `json:"fixed"`               // "false" for none
	FixedPoints int64  `json:"fixed_points"`        // besides those of sides; -1 if they were not counted
	Drawing     string `json:"drawing,omitempty"`   // the file, and the values of its regions
	Regions     string `json:"regions,omitempty"`   // those of problem.regions, with their values
	Coefficient string `json:"coefficient"`         // "1" for none, and where a drawing has materials
	Materials   string `json:"materials,omitempty"` // of the drawing, with their coefficients
	Screening   string `json:"screening"`           // "0" for none
	LeftOut     Count  `json:"left_out,omitzero"`   // parts of the material that nothing fixes and nothing drives
	// TakenOff is of a problem whose constant nothing determines: its field has the mean 0.
	TakenOff *TakenOff `json:"taken_off,omitempty"`
	// Apart are pairs of opposite sides with values or heat transfers that no part of the material joins.
	Apart    [][2]string `json:"apart,omitempty"`
	Weighted bool        `json:"weighted"` // points have weights of their own
	Width    float64     `json:"width"`
	Height   float64     `json:"height"`
	SpacingX float64     `json:"spacing_x"`
	SpacingY float64     `json:"spacing_y"`
}

// Setup describes the problem. fixed is the number of points that CountFixed finds in the whole mesh, or -1.
func (p *Problem) Setup(fixed int64) Setup {
	n, text, drawing, regions := p.numbers, p.fixed.text, "", ""
	switch {
	case p.drawing != nil:
		text, drawing = NoFixed, p.drawing.describe(p.found != nil)
	case p.regions.list != nil:
		text, regions = NoFixed, p.regions.describe(p.found != nil)
	}
	coefficient, materials := p.coefficient.text, ""
	if p.drawing != nil && p.drawing.hasCoefficients() {
		coefficient, materials = "1", p.drawing.materials()
	}
	s := Setup{Left: p.sides[west].text, Right: p.sides[east].text, Top: p.sides[north].text,
		Bottom: p.sides[south].text, Axis: p.config.Grid.Axis, Initial: p.initial.text,
		Source: p.source.text, Fixed: text, FixedPoints: fixed,
		Drawing: drawing, Regions: regions, Coefficient: coefficient, Materials: materials, Screening: p.screening.text,
		Weighted: p.weighted, Width: n.width, Height: n.height, SpacingX: n.hx, SpacingY: n.hy}
	if p.taken != nil {
		s.TakenOff = &p.taken.TakenOff
	}
	if p.islands != nil {
		s.LeftOut, s.Apart = p.islands.Idle[0], p.apart()
	}
	return s
}

// NoFixed is the value of problem.fixed without fixed points.
const NoFixed = "false"

// maxShown is the number of characters of an expression that Lines shows.
const maxShown = 60

// Lines returns the description as a name and a text for each line.
func (s Setup) Lines() [][2]string {
	cut := func(text string) string { return show.Cut(text, maxShown) }
	pair := func(a, b, first, second string) string {
		if first == second {
			return fmt.Sprintf("%s and %s %s", a, b, cut(first))
		}
		return fmt.Sprintf("%s %s, %s %s", a, cut(first), b, cut(second))
	}
	lines := [][2]string{{"Sides", pair("left", "right", s.Left, s.Right) + ", " +
		pair("top", "bottom", s.Top, s.Bottom)}}
	if s.Axis != "" {
		lines = append(lines, [2]string{"Axis", s.Axis + ": integrals are those of the full turn around it"})
	}
	if s.Width != 1 || s.SpacingX != s.SpacingY {
		lines = append(lines, [2]string{"Spacings", fmt.Sprintf("%.6g x %.6g (width %.6g, height %.6g)", s.SpacingX,
			s.SpacingY, s.Width, s.Height)})
	}
	if s.Source != "0" {
		lines = append(lines, [2]string{"Source", cut(s.Source)})
	}
	count := ""
	if s.FixedPoints >= 0 {
		count = humanize.Comma(s.FixedPoints) + ": "
	}
	switch {
	case s.Drawing+s.Regions != "":
		lines = append(lines, [2]string{"Fixed points", count + show.Cut(s.Drawing+s.Regions, 4*maxShown)})
	case s.Fixed != NoFixed:
		lines = append(lines, [2]string{"Fixed points", count + cut(s.Fixed)})
	}
	if s.Coefficient != "1" {
		lines = append(lines, [2]string{"Coefficient", cut(s.Coefficient)})
	}
	if s.Materials != "" {
		lines = append(lines, [2]string{"Materials", show.Cut(s.Materials, 4*maxShown)})
	}
	if s.Screening != "0" {
		lines = append(lines, [2]string{"Screening", cut(s.Screening)})
	}
	if n := s.LeftOut; n.Parts > 0 {
		lines = append(lines, [2]string{"Left out", fmt.Sprintf("%s of the material with %s, which nothing fixes",
			english.Plural(int(n.Parts), "part", ""), english.Plural(int(n.Points), "point", ""))})
	}
	if t := s.TakenOff; t != nil {
		lines = append(lines, [2]string{"Constant", fmt.Sprintf("the field has the mean 0, as no side has values; "+
			"%.6g is taken off the source", t.Amount)})
	}
	for _, pair := range s.Apart {
		lines = append(lines, [2]string{"Apart", fmt.Sprintf("no part of the material leads from %s to %s", pair[0],
			pair[1])})
	}
	return lines
}
