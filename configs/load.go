package configs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/viper"

	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
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

// endings are those of run files, which name their formats.
var endings = []string{".yaml", ".yml", ".toml", ".json"}

// StandardInput as the name of a run file stands for standard input.
const StandardInput = "-"

// maxFile is far larger than any run file, and far smaller than a field that is given by mistake.
const maxFile = 1 << 20

// Load merges flags over environment over file over Default. It reports all unknown keys and values of the wrong type
// in one error. Validate checks whether the values are allowed.
func Load(o Options) (Config, error) {
	var data []byte
	if o.File != "" {
		var err error
		if data, err = o.runFile(); err != nil {
			return Config{}, fmt.Errorf("run file: %w", err)
		}
	}
	return merge(o, data)
}

func (o Options) runFile() ([]byte, error) {
	if o.File != StandardInput {
		data, err := readFile(o.File)
		if kind, ok := errors.AsType[regular.KindError](err); ok && kind.Type&fs.ModeNamedPipe != 0 && o.Stdin != nil {
			err = fmt.Errorf("%w; %s reads standard input", err, StandardInput)
		}
		if near := sameName(o.File); errors.Is(err, fs.ErrNotExist) && near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return data, err
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

// sameName returns the run file that has the name of path but for its ending; "" if there is none.
func sameName(path string) string {
	for _, ending := range endings {
		other := strings.TrimSuffix(path, filepath.Ext(path)) + ending
		if _, err := os.Stat(other); err == nil {
			return other
		}
	}
	return ""
}

// LogFormat returns log.format as Load merges it, even if Load refuses other keys. The error of Load is shown in that
// format.
func LogFormat(o Options) string {
	m := merger{v: viper.New(), keys: keys(), given: map[string]bool{}}
	m.v.SetDefault("log.format", Default().Log.Format)
	if data, err := readFile(o.File); o.File != "" && err == nil {
		_ = m.file(o.File, data) // Load reports the error
	}
	_ = m.environ(o.Environ)
	m.set(o.Set)
	return m.v.GetString("log.format")
}

func readFile(path string) ([]byte, error) { return regular.ReadFile(path, maxFile) }

// merge is Load after the run file was read.
func merge(o Options, data []byte) (Config, error) {
	c, given, err := mergeOpen(o, data)
	if err != nil {
		return Config{}, err
	}
	return c.settle(given), nil
}

// merge merges the sources. It leaves open what settle decides.
func (m *merger) merge(o Options, data []byte) (Config, error) {
	unset := Default()
	for _, k := range m.keys {
		m.v.SetDefault(k.name, k.value(unset))
	}
	m.v.SetDefault("solver.method", Auto)
	if o.File != "" {
		if err := m.file(o.File, data); err != nil {
			return Config{}, err
		}
	}
	if err := m.environ(o.Environ); err != nil {
		return Config{}, err
	}
	m.set(o.Set)
	if err := m.err(); err != nil {
		return Config{}, err
	}
	var c Config
	if err := m.v.Unmarshal(&c); err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	c.Problem.Beside = m.beside
	return c, nil
}

type merger struct {
	v      *viper.Viper
	keys   []key
	given  map[string]bool // keys that a source has
	faults []error         // at most maxFaults
	more   int             // faults beyond those
	beside string          // directory of the run file; see Problem.Beside
}

// origin describes the source of a value.
type origin struct {
	source string                  // "--set", "environment JACOBI_GRID_NX", "file run.yaml"
	spell  func(key string) string // returns a key as the source writes it
}

func asKey(key string) string { return key }

func envName(key string) string {
	return "JACOBI_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// file merges data, the contents of the run file at path.
func (m *merger) file(path string, data []byte) error {
	tree, err := decode(path, data)
	if err != nil {
		return fmt.Errorf("run file %s: %w", path, err)
	}
	flat := map[string]any{}
	m.walk(tree, "", origin{"file " + path, asKey}, flat)
	m.beside = beside(path, flat)
	return m.v.MergeConfigMap(nested(flat))
}

// walk checks the leaves of tree and adds them to flat. Names are case-insensitive.
func (m *merger) walk(tree map[string]any, prefix string, from origin, flat map[string]any) {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		lower := strings.ToLower(name)
		if first, ok := seen[lower]; ok {
			m.fault("%s%s (%s): given twice, also as %s%s", prefix, show.Text(name), from.source, prefix,
				show.Text(first))
			continue
		}
		seen[lower] = name
		full := prefix + lower
		sub, isMap := tree[name].(map[string]any)
		if mixed, ok := tree[name].(map[any]any); ok {
			m.fault("%s (%s): %w", show.Text(full), from.source, nameless(mixed))
			continue
		}
		switch {
		case m.isSection(full) && isMap:
			m.walk(sub, full+".", from, flat)
		case m.isSection(full):
			if tree[name] == nil {
				continue // an empty section
			}
			m.fault("%s %s (%s): must be a section with keys", full, quote(full, tree[name]), from.source)
		default:
			m.put(full, tree[name], from, flat)
		}
	}
}

// nameless returns an error about a key of a section in YAML that is no text.
func nameless(section map[any]any) error {
	for key := range section {
		switch key.(type) {
		case int, float64:
			return fmt.Errorf("the number %v stands in the place of a key; decimals have a point, not a comma", key)
		}
	}
	return errors.New("a key is no text")
}

func (m *merger) isSection(name string) bool {
	return slices.ContainsFunc(m.keys, func(k key) bool { return strings.HasPrefix(k.name, name+".") })
}

// put converts the value of one key and adds it to flat.
func (m *merger) put(name string, raw any, from origin, flat map[string]any) {
	i := slices.IndexFunc(m.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		m.add(func() error { return m.unknown(name, from) })
		return
	}
	v, err := m.keys[i].convert(raw)
	if err != nil {
		m.fault("%s %s (%s): %w", name, quote(name, raw), from.source, err)
		return
	}
	flat[name], m.given[name] = v, true
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
	return errors.Join(append(m.faults, fmt.Errorf("and %s", english.Plural(m.more, "more fault", "")))...)
}

// environ merges the variables that begin with JACOBI_ and a section. Other variables, such as JACOBI_RANK, are no
// keys.
func (m *merger) environ(list []string) error {
	flat := map[string]any{}
	for _, line := range list {
		name, value, _ := strings.Cut(line, "=")
		rest, ok := strings.CutPrefix(name, "JACOBI_")
		if !ok || name == "JACOBI_RUN_ID" {
			continue
		}
		section, leaf, ok := strings.Cut(strings.ToLower(rest), "_")
		if !ok || !m.isSection(section) {
			continue
		}
		full := section + "." + leaf
		// A variable has underscores where a key may have dots.
		if i := slices.IndexFunc(m.keys, func(k key) bool { return envName(k.name) == name }); i >= 0 {
			full = m.keys[i].name
		}
		m.put(full, value, origin{"environment " + name, envName}, flat)
	}
	return m.v.MergeConfigMap(nested(flat))
}

// set overrides everything with the key=value pairs of list.
func (m *merger) set(list []string) {
	flat := map[string]any{}
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(name) == "" {
			m.fault("--set %s: must be key=value", pair)
			continue
		}
		m.put(strings.ToLower(strings.TrimSpace(name)), value, origin{"--set", asKey}, flat)
	}
	for name, value := range flat {
		m.v.Set(name, value)
	}
}

// nested turns keys of the form section.key, or section.part.key, into maps of maps.
func nested(flat map[string]any) map[string]any {
	tree := map[string]any{}
	for name, value := range flat {
		at, leaf := tree, name
		for section, rest, ok := strings.Cut(leaf, "."); ok; section, rest, ok = strings.Cut(leaf, ".") {
			sub, ok := at[section].(map[string]any)
			if !ok {
				sub = map[string]any{}
				at[section] = sub
			}
			at, leaf = sub, rest
		}
		at[leaf] = value
	}
	return tree
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
	}
	return show.Text(fmt.Sprint(v))
}
