package configs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jacobi/internal/base/show"
)

// Base is a merged configuration from which those of many runs differ in some keys.
type Base struct {
	config Config // before resolve
	given  map[string]bool
}

// Config returns the configuration of a run without keys of its own.
func (b *Base) Config() Config { return b.config.resolve(b.given) }

// With returns what Load returns with the keys of a run added to those of --set. It refuses keys that belong to the
// start of the ranks, and names source in its errors. file returns the path of the file from which a key comes, and ""
// for none: inputs are looked for beside it, too.
func (b *Base) With(own map[string]any, source string, file func(key string) string) (Config, error) {
	m := merger{flat: map[string]any{}, config: b.config, given: maps.Clone(b.given)}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		full := strings.ToLower(strings.TrimSpace(name))
		if why := OfStart(full); why != "" {
			m.fault("%s (%s): %s", show.Text(full), source, why)
			continue
		}
		from := origin{source: source}
		if k, _ := keyOf(full); file(full) != "" && (k.kind == expression || k.kind == filePath) {
			from.dir = dirOf(file(full))
			m.config.Problem.Dir = from.dir
		}
		m.put(full, own[name], from)
	}
	if err := m.err(); err != nil {
		return Config{}, err
	}
	for _, k := range keys() {
		if v, ok := m.flat[k.name]; ok {
			k.set(&m.config, v)
		}
	}
	return m.config.resolve(m.given), nil
}

// The sections whose keys belong to the start of the ranks, and the keys and sections that many runs cannot have.
var (
	startSections = []string{"run", "device", "halo", "nats", "metrics", "view", "log"}
	soleKeys      = []string{"output.every", "output.probes_every", "output.trace"}
	soleSections  = []string{"trace", "checkpoint"}
)

const (
	ofStart = "the key belongs to the start of the ranks, and is the same for all runs"
	ofAlone = "the key is of a run that is alone"
)

// OfStart says why a key cannot differ between the runs of one start; "" if it can.
func OfStart(name string) string {
	section, _, _ := strings.Cut(name, ".")
	switch {
	case slices.Contains(startSections, section) || name == "output.dir":
		return ofStart
	case slices.Contains(soleSections, section) || slices.Contains(soleKeys, name):
		return ofAlone
	}
	return ""
}

// CheckMany returns an error for each key of c that many runs of one start cannot have.
func CheckMany(c Config) error {
	var faults []error
	unset := Default()
	for _, k := range keys() {
		sole := OfStart(k.name) == ofAlone || k.name == "view.listen" || k.name == "metrics.listen"
		if sole && k.text(c) != k.text(unset) {
			faults = append(faults, fmt.Errorf("%s %q: %s", k.name, k.text(c), ofAlone))
		}
	}
	for _, f := range c.Output.Files() {
		if f.stdout && f.Name == Stdout {
			faults = append(faults, fmt.Errorf("%s %q: standard output is of a run that is alone", f.Key, f.Name))
		}
	}
	return errors.Join(faults...)
}

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
		if k.kind != expression {
			continue
		}
		text := k.text(b.config)
		if value, has := own[k.name]; has {
			text, _ = value.(string)
			text = origin{dir: dirOf(file(k.name))}.path(k, text)
		}
		if k.namesFile(text) {
			paths = append(paths, text)
		}
	}
	return paths
}
