package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// YAML returns c as a run file. Loading it gives c again, but for the secrets, which are hidden, and for Solver.Why.
func YAML(c Config) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("configuration as YAML: %w", err)
	}
	return b.Bytes(), nil
}

// Redacted returns c with its secrets hidden: credentials in the server's URL, and keys that hold or name a secret.
func Redacted(c Config) Config {
	c.NATS = c.NATS.Public()
	return c
}

// MarshalYAML leaves out tolerances that the user has not named, so that a run file with them means the same.
func (s Solver) MarshalYAML() (any, error) {
	type keys Solver
	var n yaml.Node
	if err := n.Encode(keys(s)); err != nil || !s.DefaultTolerance {
		return &n, err
	}
	at := slices.IndexFunc(n.Content, func(k *yaml.Node) bool { return k.Value == "tolerance" })
	n.Content = slices.Delete(n.Content, at, at+4) // keys and values
	n.Content[at].HeadComment = "no tolerance is named: " + s.tolerances()
	return &n, nil
}

// tolerances names those in force, as keys.
func (s Solver) tolerances() string {
	if s.RelativeTolerance == 0 {
		return "tolerance " + formatFloat(s.Tolerance)
	}
	return "relative_tolerance " + formatFloat(s.RelativeTolerance)
}

// runText is the written form of Run.
type runText struct {
	Name     string `json:"name" yaml:"name"`
	Ranks    int    `json:"ranks" yaml:"ranks"`
	Liveness string `json:"liveness" yaml:"liveness"`
	Balance  string `json:"balance" yaml:"balance"`
}

func (r Run) text() runText { return runText{r.Name, r.Ranks, formatDuration(r.Liveness), r.Balance} }

// MarshalJSON writes the duration as text.
func (r Run) MarshalJSON() ([]byte, error) { return json.Marshal(r.text()) }

// MarshalYAML writes the duration as text.
func (r Run) MarshalYAML() (any, error) { return r.text(), nil }

// gridText is the written form of Grid.
type gridText struct {
	NX     int     `json:"nx" yaml:"nx"`
	NY     int     `json:"ny" yaml:"ny"`
	DType  string  `json:"dtype" yaml:"dtype"`
	Width  float64 `json:"width" yaml:"width"`
	Height any     `json:"height" yaml:"height"` // "auto" or a number
}

func (g Grid) text() gridText {
	t := gridText{NX: g.NX, NY: g.NY, DType: g.DType, Width: g.Width, Height: "auto"}
	if g.Height != 0 {
		t.Height = g.Height
	}
	return t
}

// MarshalJSON writes the height as "auto" or a number.
func (g Grid) MarshalJSON() ([]byte, error) { return json.Marshal(g.text()) }

// MarshalYAML writes the height as auto or a number.
func (g Grid) MarshalYAML() (any, error) { return g.text(), nil }

// haloText is the written form of Halo.
type haloText struct {
	Transport string `json:"transport" yaml:"transport"`
	Depth     any    `json:"depth" yaml:"depth"` // "auto" or an integer
	Timeout   string `json:"timeout" yaml:"timeout"`
	Compress  string `json:"compress" yaml:"compress"`
	Direct    Direct `json:"direct" yaml:"direct"`
}

func (h Halo) text() haloText {
	t := haloText{Transport: h.Transport, Depth: "auto", Timeout: formatDuration(h.Timeout), Compress: h.Compress,
		Direct: h.Direct}
	if h.Depth != 0 {
		t.Depth = h.Depth
	}
	return t
}

// MarshalJSON writes the depth as "auto" or an integer and the timeout as text.
func (h Halo) MarshalJSON() ([]byte, error) { return json.Marshal(h.text()) }

// MarshalYAML writes the depth as auto or an integer and the timeout as text.
func (h Halo) MarshalYAML() (any, error) { return h.text(), nil }

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
