package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"jacobi/internal/suggest"
)

// unknown says what was most likely meant by name, which is no key.
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
	return fmt.Errorf("unknown key %s (%s): %s", name, from.source, hint)
}

// nearest returns the key or the section that name most likely means. ok is false if none is near.
func nearest(name string, keys []key) (best string, ok bool) {
	_, leaf, _ := strings.Cut(name, ".")
	if leaf == "" {
		leaf = name
	}
	low := math.MaxInt
	take := func(candidate string, distance int, near bool) {
		if distance < low {
			best, low, ok = candidate, distance, near
		}
	}
	for _, k := range keys {
		section, l, _ := strings.Cut(k.name, ".")
		whole, part, own := suggest.Distance(name, k.name), suggest.Distance(name, section), suggest.Distance(leaf, l)
		take(k.name, whole, suggest.Near(leaf, whole))
		take(section, part, suggest.Near(name, part))
		// The right leaf in the wrong section is nearer than a stranger in the right one.
		take(k.name, 1+own, suggest.Near(leaf, own))
	}
	return best, ok
}

// Names returns all keys, as --set takes them.
func Names() []string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

// StrayVariables returns a line for each variable of environ that begins as those of keys do and sets none. others are
// variables with another meaning.
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

// spelled returns the keys of a section as their source writes them.
func spelled(keys []key, section string, from origin) (names []string) {
	for _, k := range keys {
		if strings.HasPrefix(k.name, section+".") {
			names = append(names, from.spell(k.name))
		}
	}
	return names
}

// list returns words with commas, and an "and" before the last.
func list(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
