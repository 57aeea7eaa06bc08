package configs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/base/suggest"
)

// Options are the sources of a configuration.
type Options struct {
	File    string    // run file, .yaml, .yml, .toml or .json; "" for none, StandardInput to read Stdin
	Set     []string  // key=value from flags, with the highest precedence; the last one of a key counts
	Environ []string  // NAME=value as from os.Environ; JACOBI_<SECTION>_<KEY>, in upper case, sets a key
	Stdin   io.Reader // YAML, or JSON, a subset of YAML; nil if there is none
	// Decide, unless nil, gives values to keys that no source has. given reports whether one has a key.
	Decide func(c *Config, given func(key string) bool) error
}

// StandardInput as the name of a run file stands for standard input.
const StandardInput = "-"

// maxFile is far larger than any run file, and far smaller than a field that is given by mistake.
const maxFile = 1 << 20

// Load merges flags over environment over file over Default. It reports all unknown keys and values of the wrong type
// in one error. Validate checks whether the values are allowed.
func Load(o Options) (Config, error) {
	b, err := LoadBase(o)
	if err != nil {
		return Config{}, err
	}
	return b.Config(), nil
}

// LoadBase merges the sources of o as Load does, and leaves open what resolve decides.
func LoadBase(o Options) (*Base, error) {
	var data []byte
	if o.File != "" {
		var err error
		if data, err = o.runFile(); err != nil {
			return nil, fmt.Errorf("run file: %w", err)
		}
	}
	return merge(o, data)
}

func (o Options) runFile() ([]byte, error) {
	if o.File != StandardInput {
		return readFile(o.File)
	}
	if o.Stdin == nil {
		return nil, errors.New("standard input cannot be shared by ranks; name a file")
	}
	data, err := io.ReadAll(io.LimitReader(o.Stdin, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("standard input has more than %d bytes", maxFile)
	}
	return data, err
}

// LogFormat returns log.format as Load merges it, even if Load refuses other keys. The error of Load is shown in that
// format.
func LogFormat(o Options) string {
	m := newMerger()
	if data, err := readFile(o.File); o.File != "" && err == nil {
		_ = m.file(o.File, data) // Load reports the error
	}
	_ = m.environ(o.Environ) // so it does here
	m.set(o.Set)
	m.read()
	return m.config.Log.Format
}

func readFile(path string) ([]byte, error) { return regular.ReadFile(path, maxFile) }

// merge is LoadBase after the run file was read.
func merge(o Options, data []byte) (*Base, error) {
	m := newMerger()
	if o.File != "" {
		if err := m.file(o.File, data); err != nil {
			return nil, err
		}
	}
	if err := m.environ(o.Environ); err != nil {
		return nil, err
	}
	m.set(o.Set)
	if err := m.err(); err != nil {
		return nil, err
	}
	m.read()
	if o.Decide != nil {
		if err := o.Decide(&m.config, func(key string) bool { return m.given[key] }); err != nil {
			return nil, err
		}
	}
	return &Base{m.config, m.given}, nil
}

// merger merges sources, the weakest first.
type merger struct {
	v      *viper.Viper   // what the sources have; nil for a few keys on top of config
	flat   map[string]any // the keys of the source at hand
	config Config
	given  map[string]bool // keys that a source has
	faults []error         // at most maxFaults
	more   int             // faults beyond those
}

func newMerger() *merger {
	m := &merger{v: viper.New(), flat: map[string]any{}, config: Default(), given: map[string]bool{}}
	m.config.Solver.Method, m.config.Solver.Why, m.config.Solver.DefaultTolerance = Auto, "", false
	for _, k := range keys() {
		m.v.SetDefault(k.name, k.value(m.config))
	}
	return m
}

// read takes the keys of all sources into the configuration.
func (m *merger) read() {
	for _, k := range keys() {
		k.set(&m.config, m.v.Get(k.name))
	}
}

// merged has the keys of the source at hand replace those of the sources before.
func (m *merger) merged() error {
	source := m.flat
	m.flat = map[string]any{}
	return m.v.MergeConfigMap(source)
}

// origin describes the source of a value.
type origin struct {
	source string // "--set", "environment JACOBI_GRID_NX", "file run.yaml"
	dir    string // where files that it names are looked for first; "" for the working directory
}

func envName(key string) string {
	return "JACOBI_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// file merges data, the contents of the run file at path.
func (m *merger) file(path string, data []byte) error {
	tree, err := decode(path, data)
	if err != nil {
		return fmt.Errorf("run file %s: %w", path, err)
	}
	m.config.Problem.Dir = dirOf(path)
	m.walk(tree, "", origin{"file " + path, m.config.Problem.Dir})
	return m.merged()
}

// walk merges the leaves of tree. Names are case-insensitive.
func (m *merger) walk(tree map[string]any, prefix string, from origin) {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		lower := strings.ToLower(name)
		full := prefix + lower
		sub, isMap := tree[name].(map[string]any)
		switch first, twice := seen[lower]; {
		case twice:
			m.fault("%s%s (%s): given twice, also as %s%s", prefix, show.Text(name), from.source, prefix,
				show.Text(first))
		case !isSection(full):
			m.put(full, tree[name], from)
		case isMap:
			m.walk(sub, full+".", from)
		case tree[name] != nil: // which is an empty section
			m.fault("%s %s (%s): must be a section with keys", full, quote(full, tree[name]), from.source)
		}
		seen[lower] = name
	}
}

// put takes one key of the source at hand.
func (m *merger) put(name string, raw any, from origin) {
	k, ok := keyOf(name)
	if !ok {
		m.add(func() error { return unknown(name, from.source) })
		return
	}
	v, err := k.convert(raw)
	if err != nil {
		m.fault("%s %s (%s): %w", name, quote(name, raw), from.source, err)
		return
	}
	if text, ok := v.(string); ok {
		v = from.path(k, text)
	}
	m.flat[name], m.given[name] = v, true
}

// maxFaults is how many faults of the sources are told: those of a file of another kind would fill the screen.
const maxFaults = 10

func (m *merger) fault(format string, args ...any) {
	m.add(func() error { return fmt.Errorf(format, args...) })
}

func (m *merger) add(fault func() error) {
	if len(m.faults) == maxFaults {
		m.more++
		return
	}
	m.faults = append(m.faults, fault())
}

// err returns the faults, one a line.
func (m *merger) err() error {
	if m.more == 0 {
		return errors.Join(m.faults...)
	}
	return errors.Join(append(m.faults, fmt.Errorf("and %d more faults", m.more))...)
}

// environ merges the variables that begin with JACOBI_ and a section. Other variables, such as JACOBI_RANK, are no
// keys.
func (m *merger) environ(list []string) error {
	for _, line := range list {
		name, value, _ := strings.Cut(line, "=")
		rest, ok := strings.CutPrefix(name, "JACOBI_")
		section, leaf, dotted := strings.Cut(strings.ToLower(rest), "_")
		if !ok || !dotted || !isSection(section) || name == "JACOBI_RUN_ID" {
			continue
		}
		full := section + "." + leaf
		// A variable has underscores where a key may have dots.
		if i := slices.IndexFunc(keys(), func(k key) bool { return envName(k.name) == name }); i >= 0 {
			full = keys()[i].name
		}
		m.put(full, value, origin{source: "environment " + name})
	}
	return m.merged()
}

// set overrides all other sources with the key=value pairs of list.
func (m *merger) set(list []string) {
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(name) == "" {
			m.fault("--set %s: must be key=value", pair)
			continue
		}
		m.put(strings.ToLower(strings.TrimSpace(name)), value, origin{source: "--set"})
	}
	for name, value := range m.flat {
		m.v.Set(name, value)
	}
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
		case !ours, slices.Contains(known, rest):
		case leaf != "" && isSection(section): // an unknown key, which Load refuses
		case section == "service", section == "port": // Kubernetes sets them for a service of this name
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

// quote formats a value for an error message: text in quotes, secrets hidden.
func quote(name string, v any) string {
	if strings.HasPrefix(name, "nats") && name != "nats.port" {
		return `"` + hidden + `"`
	}
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case nil:
		return "null"
	case map[string]any:
		return "{...}"
	case []any:
		return "[...]"
	}
	return show.Text(fmt.Sprint(v))
}
