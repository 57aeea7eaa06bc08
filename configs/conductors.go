package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"jacobi/solver"
	"jacobi/solver/methods"
)

// floating is the value of a region that has one value of its own, which the problem determines.
const floating = "floating"

// setValue sets a value of a region from its text: a number, floating, or floating(q) with the flux q into the region.
// The value of one that floats is 0 until it is found.
func setValue(value, floats **float64, text string) bool {
	rest, ok := strings.CutPrefix(text, floating)
	switch {
	case !ok:
		return setNumber(value, text)
	case rest == "":
		rest = "(0)"
	}
	*value = new(0.0)
	args, closed := arguments(strings.TrimPrefix(rest, "("))
	return rest[0] == '(' && closed && len(args) == 1 && setNumber(floats, args[0])
}

// Conductors returns the regions that keep one value: those of problem.regions, or of the colours of the drawing, by
// their titles. A faulty text has none.
func (p Problem) Conductors() []Region {
	if p.Regions != "" {
		list, _ := ParseRegions(p.Regions)
		return list
	}
	if p.Colours == "" {
		return nil
	}
	colours, _ := ParseColours(p.Colours)
	var list []Region
	for _, c := range colours {
		if c.Value != nil {
			list = append(list, Region{Name: c.Title(), Value: c.Value, Floating: c.Floating})
		}
	}
	return list
}

// Floats reports whether a region floats.
func (p Problem) Floats() bool {
	return slices.ContainsFunc(p.Conductors(), func(r Region) bool { return r.Floating != nil })
}

// maxConductors bounds the regions that cost one more solution each.
const maxConductors = 32

// conductors checks what needs a solution for each of several regions.
func (v *validator) conductors(c Config) {
	list := c.Problem.Conductors()
	floats, of := 0, "problem.regions"
	if c.Problem.Regions == "" {
		of = "problem.colours"
	}
	for _, r := range list {
		if r.Floating != nil {
			floats++
		}
	}
	if floats > maxConductors {
		v.fault("%s: %d regions are floating; at most %d are allowed", of, floats, maxConductors)
	}
	many := english.WordSeries(methods.Names(func(m methods.Method) bool { return m.Levels }), "or")
	if floats > 0 && !c.Solver.Entry().Levels && !c.pending() {
		v.fault("%s floating: needs solver.method %s, not %s", of, many, c.Solver.MethodText())
	}
	if !c.Output.Matrix {
		return
	}
	switch n := len(list); {
	case !c.Solver.Entry().Levels && !c.pending():
		v.fault("output.matrix true: needs solver.method %s, not %s", many, c.Solver.MethodText())
	case n == 0:
		v.fault("output.matrix true: problem.regions or problem.colours has to name at least one region with a value")
	case n > maxConductors:
		v.fault("output.matrix true: %s has %d regions with values; at most %d are allowed", of, n, maxConductors)
	case !c.Output.Results:
		v.fault("output.matrix true: output.results has to be true")
	}
}

// textValue matches the value of a region or a colour.
var textValue = regexp.MustCompile(`\bvalue=[^\s,]+`)

// withValues returns text, the value of problem.regions or problem.colours, with other values of its Conductors.
func withValues(text string, values []float64) string {
	items := strings.Split(text, ";")
	for i, item := range items {
		n := len(item)
		if where := strings.Index(item, "where="); where >= 0 {
			n = where
		}
		if at := textValue.FindStringIndex(item[:n]); at != nil {
			items[i] = item[:at[0]] + "value=" + formatFloat(values[0]) + item[at[1]:]
			values = values[1:]
		}
	}
	return strings.Join(items, ";")
}

// Grounded returns c with the values of its Conductors in which those that float are 0.
func (c Config) Grounded() Config {
	var values []float64
	for _, r := range c.Problem.Conductors() {
		values = append(values, *r.Value)
	}
	return c.withValues(values)
}

// Excited returns c with one of its Conductors at 1, the others and the sides at 0, and without sources.
func (c Config) Excited(conductor int) Config {
	p, _ := c.Problem.Resolve(c.Grid.DType) // Validate reports the error
	for _, side := range []struct{ to, from *string }{{&c.Problem.Left, &p.Left}, {&c.Problem.Right, &p.Right},
		{&c.Problem.Top, &p.Top}, {&c.Problem.Bottom, &p.Bottom}} {
		s, _ := ParseSide(*side.from)
		switch {
		case s.Wall == solver.Periodic:
			*side.to = Periodic
		case s.Transfer != "":
			*side.to = fmt.Sprintf("%s(%s, 0)", robin, s.Transfer)
		case s.Wall == solver.Neumann:
			*side.to = neumann + "(0)"
		default:
			*side.to = "0"
		}
	}
	c.Problem.Source = "0"
	values := make([]float64, len(c.Problem.Conductors()))
	values[conductor] = 1
	return c.withValues(values)
}

// withValues returns c with other values of its Conductors.
func (c Config) withValues(values []float64) Config {
	c.Problem.Initial = "0" // no point keeps it
	if c.Problem.Regions != "" {
		c.Problem.Regions = withValues(c.Problem.Regions, values)
	} else {
		c.Problem.Colours = withValues(c.Problem.Colours, values)
	}
	return c
}
