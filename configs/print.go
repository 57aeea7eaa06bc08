package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

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
