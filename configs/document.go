package configs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"jacobi/internal/base/show"
)

// EnvJob is the variable in which a launcher gives a rank its Start. The rank then has no other source of keys.
const EnvJob = "JACOBI_JOB"

// Start is what a rank has to know as it starts: its job, and what it does besides, or in place of, solving that.
type Start struct {
	Planned
	Task
}

// Task is what the ranks of a launcher do besides, or in place of, solving their job.
type Task struct {
	Stats   bool            `json:"stats,omitempty"`   // publish statistics while they sweep
	Study   bool            `json:"study,omitempty"`   // do many jobs, as they are ordered
	Examine bool            `json:"examine,omitempty"` // take every step before the sweeps, report and end
	Probe   []string        `json:"probe,omitempty"`   // measure the machines: the parts of a probe.Request
	Soak    json.RawMessage `json:"soak,omitempty"`    // solve again and again, and compare: a soak.Order
}

// Planned is a job that was checked: its configuration, and the contents of the files that its problem reads, as
// package problem has them. They are nil where nobody has planned the job yet.
type Planned struct {
	Config
	Contents map[string]string
}

// document is a job as JSON: its keys as text, but for those that have their defaults, and what no key says.
type document struct {
	Keys     map[string]string `json:"keys"`
	Why      string            `json:"why,omitempty"`               // Solver.Why
	Default  bool              `json:"default_tolerance,omitempty"` // Solver.DefaultTolerance
	Contents map[string]string `json:"contents"`
	Task     Task              `json:"task"` // of a Start
}

// Document returns the keys of c that do not belong to the start of the ranks, and its contents, as JSON for
// FromDocument.
func Document(c Planned) ([]byte, error) { return documentOf(Start{Planned: c}, ofJob) }

// ofJob reports whether a key belongs to a job and not to the start of the ranks.
func ofJob(key string) bool { return OfStart(key) == "" }

func documentOf(s Start, with func(key string) bool) ([]byte, error) {
	d := document{Keys: map[string]string{}, Why: s.Solver.Why, Default: s.Solver.DefaultTolerance,
		Contents: s.Contents, Task: s.Task}
	unset := Default()
	for _, k := range keys() {
		text := k.text(s.Config)
		if !with(k.name) || text == k.text(unset) {
			continue
		}
		if !utf8.ValidString(text) { // JSON would change it
			return nil, fmt.Errorf("%s: its content is not text in UTF-8", k.name)
		}
		d.Keys[k.name] = text
	}
	return json.Marshal(d)
}

// FromDocument returns the job of a document. The keys of the start are those of start.
func FromDocument(data []byte, start Config) (Planned, error) {
	s, err := read(data, start, ofJob)
	return s.Planned, err
}

// read returns the Start of a document. Keys for which of is false are those of start.
func read(data []byte, start Config, of func(key string) bool) (Start, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return Start{}, fmt.Errorf("document of a job: %w", err)
	}
	c, unset, given := start, Default(), map[string]bool{}
	for _, k := range keys() {
		given[k.name] = true
		text, ok := d.Keys[k.name]
		switch {
		case !of(k.name):
		case ok:
			v, err := k.convert(text)
			if err != nil {
				return Start{}, fmt.Errorf("document of a job: %s %s: %w", k.name, quote(k.name, text), err)
			}
			k.set(&c, v)
		default:
			k.set(&c, k.value(unset))
		}
	}
	c.Solver.Why, c.Solver.DefaultTolerance = show.Text(d.Why), d.Default
	return Start{Planned{c.resolve(given), d.Contents}, d.Task}, nil
}

// Variable returns s as NAME=value for FromLauncher, secrets included. A process passes it to another one this way
// because secrets on a command line would be visible. It fails for more than Linux passes in a variable.
func (s Start) Variable() (string, error) {
	data, err := documentOf(s, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	v := EnvJob + "=" + string(data)
	if len(v) > maxVariable {
		longest := slices.MaxFunc(keys(), func(a, b key) int {
			return cmp.Compare(len(a.text(s.Config)), len(b.text(s.Config)))
		})
		return "", fmt.Errorf("the keys of a rank take %d bytes and %d are allowed; the longest is %s", len(v),
			maxVariable, longest.name)
	}
	return v, nil
}

// maxVariable is the most bytes of NAME=value for a process on Linux, MAX_ARG_STRLEN without the zero at its end.
const maxVariable = 128<<10 - 1

// FromLauncher returns what Start.Variable has put into env.
func FromLauncher(env []string) (Start, error) {
	job := ""
	for _, v := range env {
		if text, ok := strings.CutPrefix(v, EnvJob+"="); ok {
			job = text
		}
	}
	s, err := read([]byte(job), Default(), func(string) bool { return true })
	if err != nil {
		return s, fmt.Errorf("environment %s: %w", EnvJob, err)
	}
	return s, nil
}

// Amend returns env with a change to what a launcher has put there for FromLauncher.
func Amend(env []string, change func(*Start)) ([]string, error) {
	s, err := FromLauncher(env)
	if err != nil {
		return nil, err
	}
	change(&s)
	v, err := s.Variable()
	rest := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, EnvJob+"=") })
	return append(rest, v), err
}

// Hash returns the SHA-256, in hexadecimal, of the keys on which all ranks of a run must agree: all keys but these.
//   - run.name is a title.
//   - device: ranks of one run may use different backends and numbers of threads; the bits are the same.
//   - nats: nodes may reach the same servers under different names and keep their credentials in different places.
//   - halo.direct.listen: nodes may have other networks and other free ports.
//   - output.dir: nodes may see the same directory at different paths. The file names do count, since all ranks write
//     one field.
//   - checkpoint.dir and checkpoint.resume, for the same reason.
//   - metrics: one process serves them, wherever it runs.
//   - view: rank 0 alone serves the page, and it changes nothing.
//   - log: messages of a rank do not affect its results.
func Hash(c Config) string {
	h := sha256.New()
	fmt.Fprintln(h, "jacobi configuration 1")
	for _, k := range keys() {
		section, _, _ := strings.Cut(k.name, ".")
		if slices.Contains([]string{"device", "nats", "metrics", "view", "log"}, section) ||
			slices.Contains([]string{"run.name", "halo.direct.listen", "output.dir", "checkpoint.dir",
				"checkpoint.resume"}, k.name) {
			continue
		}
		fmt.Fprintf(h, "%s=%q\n", k.name, k.text(c))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// YAML returns c as a run file. Loading it gives c again, but for the secrets, which are hidden, and for Solver.Why.
// Tolerances that the user has not named are left out, so that the file means the same.
func YAML(c Config) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	n, err := c.written(c.Solver.DefaultTolerance)
	if err == nil {
		err = e.Encode(n)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration as YAML: %w", err)
	}
	return b.Bytes(), nil
}

// MarshalJSON writes c as a run file, with its secrets hidden.
func (c Config) MarshalJSON() ([]byte, error) {
	n, err := c.written(false)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	writeJSON(&b, n)
	return b.Bytes(), nil
}

// writeJSON writes a section or a scalar of YAML as JSON.
func writeJSON(b *bytes.Buffer, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		text, _ := json.Marshal(n.Value) // text always has a JSON form
		b.Write(text)
		return
	}
	if n.Kind == yaml.ScalarNode {
		b.WriteString(n.Value)
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		fmt.Fprintf(b, "%c%q:", "{,"[min(i, 1)], n.Content[i].Value)
		writeJSON(b, n.Content[i+1])
	}
	b.WriteByte('}')
}

// Redacted returns c with its secrets hidden: credentials in the server's URL, and keys that hold or name a secret.
func Redacted(c Config) Config {
	c.NATS = c.NATS.Public()
	return c
}

// written returns c as sections in the order of the keys, with its secrets hidden. With openTolerance a comment stands
// for the tolerances.
func (c Config) written(openTolerance bool) (*yaml.Node, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	c = Redacted(c)
	for _, k := range keys() {
		if openTolerance && (k.name == "solver.tolerance" || k.name == "solver.relative_tolerance") {
			continue
		}
		path := strings.Split(k.name, ".")
		at, leaf := root, &yaml.Node{Kind: yaml.ScalarNode, Value: path[len(path)-1]}
		for _, section := range path[:len(path)-1] { // the keys of a section follow each other
			last := len(at.Content) - 2
			if last < 0 || at.Content[last].Value != section {
				at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: section},
					&yaml.Node{Kind: yaml.MappingNode})
				last += 2
			}
			at = at.Content[last+1]
		}
		if openTolerance && k.name == "solver.max_iterations" {
			leaf.HeadComment = "no tolerance is named: " + c.Solver.tolerances()
		}
		value := &yaml.Node{}
		if err := value.Encode(k.written(c)); err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		at.Content = append(at.Content, leaf, value)
	}
	return root, nil
}

// written returns the value of k in c as files have it.
func (k key) written(c Config) any {
	switch v := k.value(c).(type) {
	case time.Duration:
		return formatDuration(v)
	case Interval:
		return v.String()
	case int:
		if k.kind == depth && v == 0 {
			return "auto"
		}
		return v
	case float64:
		if k.kind == length && v == 0 {
			return "auto"
		}
		return v
	default:
		return v
	}
}

// tolerances names those in force, as keys.
func (s Solver) tolerances() string {
	if s.RelativeTolerance == 0 {
		return "tolerance " + formatFloat(s.Tolerance)
	}
	return "relative_tolerance " + formatFloat(s.RelativeTolerance)
}

// formatDuration is like time.Duration.String without zero units at the end: 10m instead of 10m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
