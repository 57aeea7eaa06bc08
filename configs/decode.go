package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Bounds of a run file, far above those of any run.
const (
	maxNames   = 5000 // keys of TOML; the decoder compares each with all before it
	maxAliases = 100  // of YAML; each copies its anchor
	maxDepth   = 10   // nesting of JSON
)

// decode reads a run file in the format that its extension names.
func decode(path string, data []byte) (map[string]any, error) {
	data, err := toUTF8(data)
	if err != nil {
		return nil, err
	}
	switch ending := strings.ToLower(filepath.Ext(path)); {
	case path == StandardInput, ending == ".yaml", ending == ".yml":
		return decodeYAML(data)
	case ending == ".toml":
		return decodeTOML(data)
	case ending == ".json":
		return decodeJSON(data)
	}
	return nil, fmt.Errorf("extension %q: allowed are .yaml, .yml, .toml and .json", filepath.Ext(path))
}

// toUTF8 returns data as UTF-8 without a byte order mark. It converts UTF-16 with a byte order mark, as Windows writes
// it.
func toUTF8(data []byte) ([]byte, error) {
	data, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), data)
	for i := 0; err == nil && i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			err = fmt.Errorf("%s: byte 0x%02x; must be text in UTF-8", position(data, i), data[i])
		}
		i += size
	}
	return data, err
}

// position returns the line and the column, both from 1, of the byte at offset.
func position(data []byte, offset int) string {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte{'\n'})
	return fmt.Sprintf("line %d, column %d", 1+line, 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]))
}

// DecodeLine decodes a JSON object that stands on a line of its own. Its errors name the column.
func DecodeLine(line []byte) (tree map[string]any, err error) {
	if line, err = toUTF8(line); err == nil {
		tree, err = decodeJSON(line)
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "line 1, "))
	}
	return tree, nil
}

// decodeJSON decodes a JSON object token by token: a decoder of whole objects takes the last of two equal keys, and 0
// for numbers that are too small.
func decodeJSON(data []byte) (map[string]any, error) {
	err := json.Unmarshal(data, new(json.RawMessage))
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("%s: %w", position(data, max(1, int(e.Offset))-1), err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	value, err := jsonValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", position(data, int(d.InputOffset())), err)
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("must be an object with keys")
	}
	return tree, nil
}

// jsonValue returns the next value of a document without faults of syntax: text, a float64, true, false, nil, an object
// or, empty, an array. depth counts those around it.
func jsonValue(d *json.Decoder, depth int) (any, error) {
	token, _ := d.Token()
	if n, ok := token.(json.Number); ok {
		if f, ok := Number(n.String()); ok {
			return f, nil
		}
		return nil, fmt.Errorf("%s: must be %s", n, ANumber)
	}
	bracket, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("more than %d objects within one another", maxDepth)
	}
	object := map[string]any{}
	for d.More() {
		name := ""
		if bracket == '{' {
			key, _ := d.Token()
			name, _ = key.(string)
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("the key %q is given twice", name)
			}
		}
		value, err := jsonValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	_, _ = d.Token()
	if bracket == '[' {
		return []any{}, nil
	}
	return object, nil
}

func decodeTOML(data []byte) (tree map[string]any, err error) {
	if bytes.Count(data, []byte{'='})+bytes.Count(data, []byte("\n[")) > maxNames {
		return nil, fmt.Errorf("more than %d keys", maxNames)
	}
	err = toml.Unmarshal(data, &tree)
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	var p unstable.Parser
	p.Reset(data)
	for err == nil && p.NextExpression() {
		if e := p.Expression(); e.Kind == unstable.KeyValue {
			err = checkFloats(e.Value())
		}
	}
	return tree, err
}

// checkFloats refuses a number that the decoder rounds to 0, in a value of TOML.
func checkFloats(n *unstable.Node) (err error) {
	if n.Kind == unstable.Float && vanishes(string(n.Data)) {
		return fmt.Errorf("%s: must be %s", n.Data, ANumber)
	}
	for children := n.Children(); err == nil && children.Next(); {
		err = checkFloats(children.Node())
	}
	return err
}

// decodeYAML returns the sections of a YAML file. A value is its text as it is written: YAML itself would take 010 for
// 8 and 1e-400 for 0.
func decodeYAML(data []byte) (map[string]any, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var n yaml.Node
	if err := d.Decode(&n); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if second := d.Decode(&yaml.Node{}); !errors.Is(second, io.EOF) {
		return nil, errors.New("a second document begins; one is allowed")
	}
	var r yamlReader
	for line := range strings.Lines(string(data)) {
		r.lines = append(r.lines, []rune(line))
	}
	value, err := r.value(n.Content[0])
	tree, ok := value.(map[string]any)
	if !ok && value != nil && err == nil {
		err = errors.New("must be sections with keys")
	}
	return tree, err
}

// yamlReader turns the one document of a YAML file into sections.
type yamlReader struct {
	lines   [][]rune // of the file
	aliases int      // that were seen
}

// value returns the value of a node: text, nil, a section or, empty, a list.
func (r *yamlReader) value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		if r.aliases++; r.aliases > maxAliases {
			return nil, fmt.Errorf("line %d: more than %d aliases", n.Line, maxAliases)
		}
		return r.value(n.Alias)
	case yaml.ScalarNode:
		if r.tagged(n) {
			return nil, fmt.Errorf("line %d: text that begins with ! has quotes", n.Line)
		}
		if n.Tag == "!!null" {
			return nil, nil
		}
		return n.Value, nil
	case yaml.SequenceNode: // no key takes a list; put refuses it
		return []any{}, nil
	}
	section := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if _, twice := section[name]; twice {
			return nil, fmt.Errorf("line %d: the key %q is given twice", n.Content[i].Line, name)
		}
		var err error
		if section[name], err = r.value(n.Content[i+1]); err != nil {
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
