package configs

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
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
		tree, err := decodeJSON(data)
		if f, ok := errors.AsType[fault](err); ok {
			return nil, fmt.Errorf("%s: %w", position(data, f.offset), f.error)
		}
		return tree, err
	}
	return nil, fmt.Errorf("extension %q: allowed are %s", filepath.Ext(path), list(endings))
}

func decodeTOML(data []byte) (tree map[string]any, err error) {
	if bytes.Count(data, []byte{'='})+bytes.Count(data, []byte("\n[")) > maxNames {
		return nil, errors.New(tooMany) // of which each would be looked up among all before it
	}
	err = toml.Unmarshal(data, &tree)
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		said, _, _ := strings.Cut(strings.TrimPrefix(e.Error(), "toml: "), ": strconv.")
		return nil, fmt.Errorf("line %d, column %d: %s", line, column, said)
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		if e := p.Expression(); e.Kind == unstable.KeyValue {
			err = errors.Join(err, checkFloats(e.Value()))
		}
	}
	return tree, err
}

// checkFloats refuses a number that the decoder rounds to 0, in a value of TOML.
func checkFloats(n *unstable.Node) error {
	if n.Kind == unstable.Float && vanishes(string(n.Data)) {
		return fmt.Errorf("%s: must be %s", n.Data, ANumber)
	}
	var err error
	for children := n.Children(); children.Next(); {
		err = errors.Join(err, checkFloats(children.Node()))
	}
	return err
}

// toUTF8 returns data as UTF-8 without a byte order mark. It converts UTF-16 with a byte order mark, as Windows writes
// it.
func toUTF8(data []byte) ([]byte, error) {
	data, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), data)
	if err != nil {
		return nil, err
	}
	if i := noText(data); i >= 0 {
		return nil, fmt.Errorf("%s: byte 0x%02x; must be text in UTF-8, or in UTF-16 with a byte order mark",
			position(data, i), data[i])
	}
	return data, nil
}

// noText returns the offset of the first byte that is 0 or not UTF-8; -1 if there is none.
func noText(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// position returns the line and the column, both from 1, of the byte at offset.
func position(data []byte, offset int) string {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte{'\n'})
	return fmt.Sprintf("line %d, column %d", 1+line, 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]))
}
