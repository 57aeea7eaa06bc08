package problem

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/configs"
)

// regions are the regions of fixed points that have names: those of problem.regions, or the colours of the drawing.
type regions struct {
	list  []configs.Region // by their numbers; those without a name have no points
	where []node           // of problem.regions: whether a place belongs to the region
}

// nameRegions takes the regions of problem.regions. Their points take the place of those of problem.fixed, and their
// values that of problem.initial.
func (p *Problem) nameRegions(def configs.Problem) error {
	if def.Regions == "" {
		return nil
	}
	list, err := configs.ParseRegions(def.Regions)
	switch {
	case err != nil:
		return fmt.Errorf("problem.regions %w", err)
	case def.Fixed != NoFixed || def.Drawing != "":
		key, text := "problem.drawing", def.Drawing
		if def.Fixed != NoFixed {
			key, text = "problem.fixed", def.Fixed
		}
		return fmt.Errorf("%s %q: problem.regions says which points are fixed; name one of the two", key, text)
	case p.initial.file != nil:
		return fmt.Errorf("problem.initial %q: beside problem.regions it must be a number or an expression",
			def.Initial)
	case p.initial.node.eval == nil:
		return nil // its error is reported
	}
	fixed, initial, found := compared(constant(0)), p.initial.node, finder(p.found)
	for i := range list {
		found(list[i].Floating, &list[i].Value)
		r := list[i]
		n, err := compile(r.Where, p.mesh, p.numbers.width, p.numbers.height)
		if err == nil && !n.isBool {
			err = errors.New("it is a number, not a condition")
		}
		if err != nil {
			return fmt.Errorf("problem.regions: %s: where %q: %w", r.Name, r.Where, err)
		}
		p.regions.where = append(p.regions.where, n)
		indexed := fixed.indexed || n.indexed
		fixed, initial = logical(math.Max, maxBounds, 0, fixed, n), choose(n, constant(*r.Value), initial)
		fixed.indexed, initial.indexed = indexed, indexed || p.initial.node.indexed
	}
	if err := p.holds("problem.regions", list); err != nil {
		return err
	}
	p.regions.list, p.initial.node = list, initial
	p.fixed = fixedPoints{part: part{key: "problem.regions", text: def.Regions, node: fixed}}
	return nil
}

// holds refuses values of regions that the type of the field does not hold. key names the regions.
func (p *Problem) holds(key string, list []configs.Region) error {
	for _, r := range list {
		if r.Value != nil && math.IsInf(p.round(*r.Value), 0) {
			return fmt.Errorf("%s: %s: value %v is too large for %s", key, r.Name, *r.Value, p.mesh.DType)
		}
	}
	return nil
}

// finder returns a function that sets the value of a region that floats to the next one of values, if they are found.
func finder(values []float64) func(floats *float64, value **float64) {
	return func(floats *float64, value **float64) {
		if floats != nil && len(values) > 0 {
			*value, values = &values[0], values[1:]
		}
	}
}

// checkFloating refuses regions that float where nothing else fixes the field.
func (p *Problem) checkFloating() error {
	floats := slices.ContainsFunc(p.regions.list, func(r configs.Region) bool { return r.Floating != nil })
	held := slices.ContainsFunc(p.regions.list, func(r configs.Region) bool {
		return r.Value != nil && r.Floating == nil
	})
	if !floats || held || p.transfers() || !p.unfixed() || !p.screening.zero() {
		return nil
	}
	return fmt.Errorf("%s: all regions are floating and no side has values, so any constant can be added to a "+
		"solution; give a region or a side a value, problem.screening above 0, or a robin side with h above 0",
		p.fixed.key)
}

// describe names the regions with their values. found says that those of the floating ones are known.
func (r regions) describe(found bool) string {
	var list []string
	for _, r := range r.list {
		if r.Value != nil {
			list = append(list, r.Name+" "+valueText(r.Value, r.Floating, found))
		}
	}
	return strings.Join(list, ", ")
}

// valueText describes the value of a region.
func valueText(value, floats *float64, found bool) string {
	switch {
	case floats == nil:
		return fmt.Sprintf("%.6g", *value)
	case found:
		return fmt.Sprintf("%.6g (floating)", *value)
	case *floats != 0:
		return fmt.Sprintf("floating(%.6g)", *floats)
	}
	return "floating"
}

// RegionFloats reports whether the region of a number floats.
func (p *Problem) RegionFloats(number int) bool { return p.regions.list[number].Floating != nil }

// RegionNames returns the names of the regions by their numbers, "" for one without points; nil if regions have none.
func (p *Problem) RegionNames() (names []string) {
	for _, r := range p.regions.list {
		names = append(names, r.Name)
	}
	return names
}

// RegionRow writes the numbers of the regions of the fixed points of row iy to dst, and -1 for other points. Regions
// have names.
func (p *Problem) RegionRow(iy int, fixed []bool, dst []int) {
	iy, _ = p.mesh.Canonical(iy)
	for ix := range dst {
		dst[ix] = -1
	}
	if p.drawing != nil {
		chosen, _ := p.drawing.given()
		for ix, on := range fixed {
			if on {
				colour, _ := p.drawing.last(&spot{x: float64(ix), y: float64(iy)}, chosen)
				dst[ix] = int(colour)
			}
		}
		return
	}
	s := &span{row: iy}
	var buf [chunk]float64
	for s.col = 0; s.col < len(dst); s.col += chunk {
		values := buf[:min(chunk, len(dst)-s.col)]
		for number, n := range p.regions.where {
			n.fill(s, values)
			for i, v := range values {
				if fixed[s.col+i] && v != 0 {
					dst[s.col+i] = number
				}
			}
		}
	}
}

// regionAt returns the number of the region of a fixed place; -1 if regions have no names.
func (p *Problem) regionAt(at *spot) (number int) {
	number = -1
	if p.drawing != nil {
		chosen, _ := p.drawing.given()
		colour, _ := p.drawing.last(at, chosen)
		return int(colour)
	}
	for i, n := range p.regions.where {
		if n.spot(at) != 0 {
			number = i
		}
	}
	for i, n := range p.regions.where { // a line without width may pass by the place
		b := box{at.x - near, at.x + near, at.y - near, at.y + near}
		if number < 0 && n.limit(b).hi > 0 {
			number = i
		}
	}
	return number
}
