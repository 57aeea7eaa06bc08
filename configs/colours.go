package configs

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Colour says what the points are that a drawing has in one colour. Points of a colour without a value are free.
type Colour struct {
	RGB         [3]uint8
	Name        string
	Value       *float64 // that the points keep; nil if they are free
	Coefficient *float64 // of the material; nil: 1, or where the points keep a value that of their free neighbours
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
	colourName = regexp.MustCompile(`^` + shortName + `$`)
)

// ParseColours reads the value of problem.colours: colours with semicolons between them, each followed by what it
// means. Commas may stand where spaces may.
//
//	#b87333 name=strip value=1; #1565c0 value=0; #2e7d32 coefficient=4.4; #ffffff
func ParseColours(text string) (all []Colour, err error) {
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ";") {
		fields := strings.FieldsFunc(item, func(r rune) bool { return unicode.IsSpace(r) || r == ',' })
		if len(fields) == 0 {
			return nil, fmt.Errorf("%q: must be a colour such as #b87333, with semicolons between colours", item)
		}
		c, err := parseColour(fields[0], fields[1:])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(item), err)
		}
		for _, key := range []string{c.String(), c.Name} {
			if key != "" && seen[key] {
				return nil, fmt.Errorf("%q: %s is given twice", strings.TrimSpace(item), key)
			}
			seen[key] = true
		}
		if all = append(all, c); len(all) > maxColours {
			return nil, fmt.Errorf("at most %d colours are allowed", maxColours)
		}
	}
	return all, nil
}

func parseColour(text string, attributes []string) (c Colour, err error) {
	if !colourText.MatchString(text) {
		return c, errors.New("must begin with a colour, as in #b87333 name=strip value=1")
	}
	if _, err := fmt.Sscanf(text, "#%02x%02x%02x", &c.RGB[0], &c.RGB[1], &c.RGB[2]); err != nil {
		return c, err
	}
	seen := map[string]bool{}
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		if seen[key] {
			return c, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		switch key {
		case "name":
			if c.Name = value; !colourName.MatchString(value) {
				return c, fmt.Errorf("name %q: must be a letter, and up to 63 letters, digits, dots, dashes and "+
					"underscores", value)
			}
		case "value":
			v, ok := Number(value)
			if !ok {
				return c, fmt.Errorf("value %q: must be %s", value, ANumber)
			}
			c.Value = &v
		case "coefficient":
			a, ok := Number(value)
			if !ok || a != 0 && !(a >= LeastCoefficient && a <= MostCoefficient) {
				return c, fmt.Errorf("coefficient %q: must be 0, where there is no material, or %g to %g", value,
					LeastCoefficient, MostCoefficient)
			}
			c.Coefficient = &a
		default:
			return c, fmt.Errorf("%q: name=..., value=... and coefficient=... are allowed", a)
		}
	}
	return c, nil
}

// coloursText converts the colours of a run file, a section or text, to text.
func coloursText(raw any) (any, error) {
	if text, ok := raw.(string); ok {
		return text, nil
	}
	section, ok := raw.(map[string]any)
	if !ok {
		return nil, errors.New(`must be colours, such as "#b87333": {name: strip, value: 1}`)
	}
	var items []string
	for _, colour := range slices.Sorted(maps.Keys(section)) {
		attributes, ok := section[colour].(map[string]any)
		if !ok && section[colour] != nil {
			return nil, fmt.Errorf("%q: must be {name: ..., value: ..., coefficient: ...}, or {} for free "+
				"points", colour)
		}
		item := []string{colour}
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			text, ok := textOf(attributes[key])
			if !ok || strings.ContainsAny(key+text, "; \t\n") {
				return nil, fmt.Errorf("%q: %s %q: must be a number, or text without spaces and semicolons", colour,
					key, text)
			}
			if f, ok := Number(text); ok && key != "name" {
				text = formatFloat(f)
			}
			item = append(item, key+"="+text)
		}
		items = append(items, strings.Join(item, " "))
	}
	return strings.Join(items, "; "), nil
}
