package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/base/show"
	"jacobi/internal/base/suggest"
)

// unknown returns the error for name, which is no key, with the nearest one or, if none is near, those of its section.
func unknown(name string, from origin) error {
	section, _, _ := strings.Cut(name, ".")
	hint := "the sections are " + list(sections()) + "; launcher --dry-run prints all keys"
	if best, ok := Nearest(name); ok && best != name { // which is a section where no value can be
		hint = "did you mean " + from.spell(best) + "?"
	} else if isSection(section) {
		hint = "the keys of " + section + " are " + list(spelled(section, from))
	}
	return fmt.Errorf("unknown key %s (%s): %s", show.Text(name), from.source, hint)
}

// CheckName returns an error if name, which source gives, is no key.
func CheckName(name, source string) error {
	if slices.Contains(Names(), name) {
		return nil
	}
	return unknown(name, origin{source: source, spell: asKey})
}

// Nearest returns the key or section that name most likely means: the right leaf in another section is nearer than
// another leaf. ok is false if none is near.
func Nearest(name string) (best string, ok bool) {
	leaf := func(name string) string { return name[1+strings.LastIndexByte(name, '.'):] }
	low := math.MaxInt
	for _, known := range append(Names(), sections()...) {
		d := min(suggest.Distance(name, known), 1+suggest.Distance(leaf(name), leaf(known)))
		if d < low {
			best, low = known, d
		}
	}
	return best, suggest.Near(leaf(name), low)
}

// Names returns all keys in the form that --set takes.
func Names() (names []string) {
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

// Defaults returns the defaults of a key as text for --set, of gtc2019 and of a problem of the user's own; "" if they
// are empty, or if there is no such key.
func Defaults(name string) (benchmark, own string) {
	c := Default()
	c.Problem.Preset, c.Solver.Method = "", Auto
	c = c.settle(map[string]bool{"problem.preset": true})
	for _, k := range keys() {
		if k.name == name {
			return k.text(Default()), k.text(c)
		}
	}
	return "", ""
}

// StrayVariables returns a warning for each variable of environ that begins with JACOBI_ but sets no key. others lists
// variables that have another meaning.
func StrayVariables(environ, others []string) (lines []string) {
	const prefix = "JACOBI_"
	var known []string // without the prefix
	for _, name := range others {
		known = append(known, strings.TrimPrefix(name, prefix))
	}
	for _, name := range Names() {
		known = append(known, strings.TrimPrefix(envName(name), prefix))
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		rest, ours := strings.CutPrefix(name, prefix)
		section, leaf, _ := strings.Cut(strings.ToLower(rest), "_")
		switch {
		case !ours || slices.Contains(known, rest):
		case leaf != "" && isSection(section): // an unknown key, which Load refuses
		case section == "service" || section == "port": // Kubernetes sets them for a service of this name
		default:
			text := "environment " + name + ": no key has this variable, and it is ignored"
			if best, ok := suggest.Nearest(rest, known); ok {
				text += "; did you mean " + prefix + best + "?"
			}
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return lines
}

func sections() (names []string) {
	for _, k := range keys() {
		section, _, _ := strings.Cut(k.name, ".")
		names = append(names, section)
	}
	return slices.Compact(names)
}

// spelled returns the keys of a section in the spelling of their source.
func spelled(section string, from origin) (names []string) {
	for _, name := range Names() {
		if strings.HasPrefix(name, section+".") {
			names = append(names, from.spell(name))
		}
	}
	return names
}

// list joins words with commas, and "and" before the last.
func list(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
