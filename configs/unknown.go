package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/base/show"
	"jacobi/internal/base/suggest"
)

// unknown returns the error for name, which is not a key, with the key that was most likely meant.
func (m *merger) unknown(name string, from origin) error {
	section, leaf, dotted := strings.Cut(name, ".")
	hint := "the sections are " + list(sections(m.keys)) + "; launcher --dry-run prints all keys"
	if best, ok := nearest(name, m.keys); m.isSection(name) {
		hint = "it is a section; its keys are " + list(spelled(m.keys, name, from))
	} else if ok {
		hint = "did you mean " + from.spell(best) + "?"
	} else if dotted && leaf != "" && m.isSection(section) {
		hint = "the keys of " + section + " are " + list(spelled(m.keys, section, from))
	}
	return fmt.Errorf("unknown key %s (%s): %s", show.Text(name), from.source, hint)
}

// CheckName returns an error if name, which source gives, is no key.
func CheckName(name, source string) error {
	m := merger{keys: keys()}
	if slices.ContainsFunc(m.keys, func(k key) bool { return k.name == name }) {
		return nil
	}
	return m.unknown(name, origin{source, asKey})
}

// otherNames has keys by what users of other programs and books call them.
var otherNames = map[string]string{"conductivity": "problem.coefficient", "permittivity": "problem.coefficient",
	"diffusivity": "problem.coefficient", "rhs": "problem.source", "k2": "problem.screening",
	"iterations": "solver.max_iterations"}

// nearest returns the key or section that name most likely means. ok is false if none is close.
func nearest(name string, keys []key) (best string, ok bool) {
	_, leaf, _ := strings.Cut(name, ".")
	if leaf == "" {
		leaf = name
	}
	if known, ok := otherNames[leaf]; ok {
		return known, true
	}
	low := math.MaxInt
	consider := func(candidate string, distance int, near bool) {
		if distance < low {
			best, low, ok = candidate, distance, near
		}
	}
	for _, k := range keys {
		section, l, _ := strings.Cut(k.name, ".")
		full, part, own := suggest.Distance(name, k.name), suggest.Distance(name, section), suggest.Distance(leaf, l)
		consider(k.name, full, suggest.Near(leaf, full))
		consider(section, part, suggest.Near(name, part))
		// The right leaf in the wrong section is closer than another leaf in the right section.
		consider(k.name, 1+own, suggest.Near(leaf, own))
	}
	return best, ok
}

// Nearest returns the key or section that name most likely means. ok is false if none is close.
func Nearest(name string) (best string, ok bool) { return nearest(name, keys()) }

// Names returns all keys in the form that --set takes.
func Names() []string {
	var names []string
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
func StrayVariables(environ, others []string) []string {
	const prefix = "JACOBI_"
	m := merger{keys: keys()}
	var known []string // without the prefix
	for _, name := range others {
		known = append(known, strings.TrimPrefix(name, prefix))
	}
	for _, k := range m.keys {
		known = append(known, strings.TrimPrefix(envName(k.name), prefix))
	}
	var lines []string
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		rest, ours := strings.CutPrefix(name, prefix)
		section, leaf, _ := strings.Cut(strings.ToLower(rest), "_")
		switch {
		case !ours || slices.Contains(known, rest):
		case leaf != "" && m.isSection(section): // an unknown key, which Load refuses
		case section == "service" || section == "port": // Kubernetes sets them for a service of this name
		default:
			text := "environment " + name + ": no key has this variable, and it is ignored"
			if best, ok := suggest.Nearest(rest, known); ok {
				text += "; did you mean " + prefix + best + "?"
			} else if m.isSection(section) {
				text += "; the keys of this section are " + list(spelled(m.keys, section, origin{spell: envName}))
			}
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return lines
}

func sections(keys []key) (names []string) {
	for _, k := range keys {
		section, _, _ := strings.Cut(k.name, ".")
		names = append(names, section)
	}
	return slices.Compact(names)
}

// spelled returns the keys of a section in the spelling of their source.
func spelled(keys []key, section string, from origin) (names []string) {
	for _, k := range keys {
		if strings.HasPrefix(k.name, section+".") {
			names = append(names, from.spell(k.name))
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
