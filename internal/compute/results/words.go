package results

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// maxLines is the number of regions that Lines describes where there are more; see Shown.
const maxLines = 8

// Shown returns how many of n things a summary lists, each in a line: all of them, or the first most. One more line
// then counts the rest. Where the rest is a single thing, that line lists it.
func Shown(n, most int) int {
	if n == most+1 {
		return n
	}
	return min(n, most)
}

// Lines returns the results for the summary, a name and a text for each line.
func (r Results) Lines() [][2]string {
	e := r.Errors
	if e == nil {
		e = &Errors{}
	}
	lines := [][2]string{
		{"Energy", number(r.Energy) + Within(r.Energy, e.Energy)},
		{"Extremes", fmt.Sprintf("min %s, max %s, mean %s", r.Min.text(e.Min), r.Max.text(e.Max), number(r.Mean))},
	}
	var fluxes []string
	for _, wall := range []string{"left", "right", "top", "bottom"} {
		if flux, ok := r.Flux[wall]; ok {
			fluxes = append(fluxes, wall+" "+number(flux)+Within(flux, e.Flux[wall])+r.Balance.both(wall))
		}
	}
	if len(fluxes) > 0 {
		lines = append(lines, [2]string{"Flux", strings.Join(fluxes, ", ")})
	}
	lines = append(lines, [2]string{"Balance", r.Balance.String()})
	key := "Regions"
	if r.Omitted != "" {
		return append(lines, [2]string{key, "not told apart: " + r.Omitted})
	}
	shown := Shown(len(r.Regions), maxLines)
	for i, g := range r.Regions[:shown] {
		values := fmt.Sprintf("%.6g", g.Min)
		switch {
		case g.Floating && i < len(e.Values):
			values = number(&g.Min) + Within(&g.Min, e.Values[i]) + " (floating)"
		case g.Floating:
			values = number(&g.Min) + " (floating)"
		case g.Max != g.Min:
			values += fmt.Sprintf(" to %.6g", g.Max)
		}
		points := humanize.Comma(g.Points) + " " + english.PluralWord(int(g.Points), "point", "")
		if g.Points == 0 {
			points = "between points"
		}
		what := fmt.Sprintf("%s at %s, the first at (%.4g, %.4g)", points, values, g.First.X, g.First.Y)
		if g.Name != "" {
			what = fmt.Sprintf("%s at %s, %s", g.Name, values, points)
		}
		what += ": flux " + number(g.Flux)
		if i < len(e.Regions) {
			what += Within(g.Flux, e.Regions[i])
		}
		lines = append(lines, [2]string{key, what})
		key = ""
	}
	if more := len(r.Regions) - shown; more > 0 {
		lines = append(lines, [2]string{"", fmt.Sprintf("and %d more, which are in the report", more)})
	}
	if r.Matrix != nil {
		lines = append(lines, r.Matrix.lines()...)
	}
	return lines
}

// text returns the value, with what the mesh leaves, and the place.
func (p Point) text(e *float64) string {
	return fmt.Sprintf("%.6g%s at (%.4g, %.4g)", p.Value, Within(&p.Value, e), p.X, p.Y)
}

// Within returns what the mesh leaves of an error in v; "" where that is not known, or less than the digits of v show.
func Within(v, e *float64) string {
	if v == nil || e == nil || !(*e > math.Abs(*v)*1e-10) {
		return ""
	}
	return fmt.Sprintf(" +- %.1g", *e)
}

// number formats a number that may be beyond float64.
func number(v *float64) string {
	if v == nil {
		return "beyond float64"
	}
	return fmt.Sprintf("%.10g", *v)
}
