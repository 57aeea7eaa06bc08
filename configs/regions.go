package configs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Region is an area that keeps a value, under a name.
type Region struct {
	Name  string
	Where string // the condition that holds in it; "" in a drawing
	Value *float64
	// Floating is the flux into a region whose value is not given; nil for others. Its Value is 0 until it is found.
	Floating *float64
}

// ParseRegions reads the value of problem.regions: names with semicolons between them, each followed by a value and, at
// last, a condition.
//
//	plus value=1 where=hypot(x-0.3, y-0.5) < 0.1; minus value=-1 where=x > 0.9
func ParseRegions(text string) (all []Region, err error) {
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ";") {
		r, err := parseRegion(item)
		if err == nil && seen[r.Name] {
			err = fmt.Errorf("%s is given twice", r.Name)
		}
		seen[r.Name] = true
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(item), err)
		}
		if all = append(all, r); len(all) > maxColours {
			return nil, fmt.Errorf("at most %d regions are allowed", maxColours)
		}
	}
	return all, nil
}

// parseRegion reads a region and its attributes.
func parseRegion(item string) (r Region, err error) {
	const form = "must have the form NAME value=NUMBER where=CONDITION, with a NAME of at most 64 letters, digits, " +
		"., - and _"
	head, where, _ := strings.Cut(item, "where=")
	fields := strings.Fields(head)
	if r.Where = strings.TrimSpace(where); len(fields) == 0 || !isName.MatchString(fields[0]) || r.Where == "" {
		return r, errors.New(form)
	}
	r.Name = fields[0]
	err = attributes(fields[1:], map[string]func(string) bool{
		"value": func(text string) bool { return setValue(&r.Value, &r.Floating, text) },
	}, "value=NUMBER, value=floating or value=floating(FLUX) and, at last, where=CONDITION")
	if err == nil && r.Value == nil {
		err = errors.New(form)
	}
	return r, err
}

// attributes reads fields of the form NAME=VALUE. set takes, by name, a value, and reports whether it is allowed.
func attributes(fields []string, set map[string]func(text string) bool, allowed string) error {
	seen := map[string]bool{}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		switch take := set[name]; {
		case seen[name]:
			return fmt.Errorf("%s is given twice", name)
		case take == nil || !take(value):
			return fmt.Errorf("%q: allowed are %s", field, allowed)
		}
		seen[name] = true
	}
	return nil
}

// setNumber sets a number from its text, if it is one.
func setNumber(to **float64, text string) bool {
	f, ok := Number(text)
	*to = &f
	return ok
}

// sectionText converts colours or regions of a run file, a section or text, to text. wrong says what they must be.
func sectionText(raw any, wrong error) (any, error) {
	if text, ok := raw.(string); ok {
		return text, nil
	}
	section, ok := raw.(map[string]any)
	if !ok {
		return nil, wrong
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(section)) {
		attributes, ok := section[name].(map[string]any)
		if !ok && section[name] != nil {
			return nil, wrong
		}
		item := []string{name}
		for _, key := range slices.Sorted(maps.Keys(attributes)) { // a condition is the last
			text, ok := textOf(attributes[key])
			apart := "; \t\n"
			if key == "where" {
				apart = ";"
			}
			if !ok || strings.ContainsAny(key+text, apart) {
				return nil, fmt.Errorf("%q: %w", name, wrong)
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
