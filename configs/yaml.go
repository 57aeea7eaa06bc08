package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxAliases bounds the aliases of a YAML file: each repeats all that its anchor has.
const maxAliases = 100

// yamlReader turns the one document of a YAML file into sections.
type yamlReader struct {
	lines          [][]rune // of the file
	names, aliases int      // that were seen
}

// decodeYAML returns the sections of a YAML file. A value is its text as it is written: YAML itself would take 010 for
// 8 and 1e-400 for 0.
func decodeYAML(data []byte) (map[string]any, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var n yaml.Node
	if err := d.Decode(&n); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if second := d.Decode(&yaml.Node{}); !errors.Is(second, io.EOF) {
		return nil, errors.New("a second document begins; one is allowed")
	}
	var r yamlReader
	for line := range strings.Lines(string(data)) {
		r.lines = append(r.lines, []rune(line))
	}
	value, err := r.value(n.Content[0], 0)
	tree, ok := value.(map[string]any)
	if !ok && value != nil && err == nil {
		err = fmt.Errorf("line %d: must be sections with keys", n.Content[0].Line)
	}
	return tree, err
}

// value returns the value of a node: text, nil, a section or, empty, a list. depth counts the sections and lists around
// it.
func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: %s", n.Line, tooDeep)
	}
	switch n.Kind {
	case yaml.AliasNode:
		if r.aliases++; r.aliases > maxAliases {
			return nil, fmt.Errorf("line %d: more than %d aliases", n.Line, maxAliases)
		}
		return r.value(n.Alias, depth+1)
	case yaml.ScalarNode:
		if r.tagged(n) {
			return nil, fmt.Errorf("line %d: text that begins with ! has quotes", n.Line)
		}
		if n.Tag == "!!null" {
			return nil, nil
		}
		return n.Value, nil
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if _, err := r.value(item, depth+1); err != nil {
				return nil, err
			}
		}
		return []any{}, nil
	}
	section := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if r.names++; r.names > maxNames {
			return nil, fmt.Errorf("line %d: %s", n.Line, tooMany)
		}
		if _, twice := section[name]; twice {
			return nil, fmt.Errorf("line %d: the key %q is given twice", n.Content[i].Line, name)
		}
		var err error
		if section[name], err = r.value(n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return section, nil
}

// tagged reports whether a value begins with !, behind its anchor, and not with !! as the types do. YAML drops a ! that
// stands alone: the condition ! x < 0.5 would become x < 0.5.
func (r *yamlReader) tagged(n *yaml.Node) bool {
	if n.Line > len(r.lines) {
		return false
	}
	line, at := r.lines[n.Line-1], n.Column-1
	if n.Anchor != "" {
		for at += len("&" + n.Anchor); at < len(line) && (line[at] == ' ' || line[at] == '\t'); at++ {
		}
	}
	return at < len(line) && line[at] == '!' && !(at+1 < len(line) && line[at+1] == '!')
}
