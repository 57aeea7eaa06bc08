package configs

import (
	"slices"
	"strings"
)

// Given returns the keys that the sources give, but those that belong to the start of the ranks, with their values.
// Together with its own keys and the contents of its files they decide the answer of a run: what they leave open,
// defaults and those keys decide.
func (b *Base) Given() map[string]string {
	given := map[string]string{}
	for _, k := range keys() {
		if b.given[k.name] && OfStart(k.name) == "" {
			given[k.name] = k.text(b.config)
		}
	}
	return given
}

// Reads returns the paths of the files that the problem of a run with keys of its own reads. file is that of With.
func (b *Base) Reads(own map[string]any, file func(key string) string) (paths []string) {
	for _, k := range keys() {
		if !strings.HasPrefix(k.name, "problem.") || !slices.Contains(inputs, k.name) {
			continue
		}
		text := k.text(b.config)
		if value, has := own[k.name]; has {
			text, _ = value.(string)
			text = origin{dir: besideOf(file(k.name))}.path(k.name, text)
		}
		if namesFile(k.name, text) {
			paths = append(paths, text)
		}
	}
	return paths
}
