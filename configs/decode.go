package configs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/viper"
)

// decode reads a run file in the format that its extension names.
func decode(path string, data []byte) (map[string]any, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if path == StandardInput {
		format = "yaml"
	}
	switch format {
	case "yaml", "yml", "toml", "json":
	default:
		return nil, fmt.Errorf("extension %q: allowed are .yaml, .yml, .toml and .json", filepath.Ext(path))
	}
	data, err := toUTF8(data)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(format, "y") {
		if err := oneDocument(data); err != nil {
			return nil, locate(data, err)
		}
	}
	d, err := viper.NewCodecRegistry().Decoder(format)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	if err := d.Decode(data, tree); err != nil {
		return nil, locate(data, err)
	}
	if err := vanishing(data); err != nil {
		return nil, err
	}
	if format == "json" {
		return tree, onceEach(data)
	}
	return tree, nil
}

// onceEach returns an error if an object of a JSON file, which can be decoded, has a key twice. Other formats refuse
// that themselves.
func onceEach(data []byte) error {
	type object map[string]bool // nil for a list
	var open []object
	isKey := false
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err != nil {
			return nil // the end
		}
		var here object
		if len(open) > 0 {
			here = open[len(open)-1]
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			here = nil
			if token == json.Delim('{') {
				here = object{}
			}
			open = append(open, here)
			isKey = here != nil
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			isKey = len(open) > 0 && open[len(open)-1] != nil
			continue
		}
		name, _ := token.(string)
		if isKey && here[name] {
			return fmt.Errorf("line %d: the key %q is given twice", 1+bytes.Count(data[:d.InputOffset()], []byte{'\n'}),
				name)
		}
		if isKey {
			here[name] = true
		}
		isKey = here != nil && !isKey
	}
}

// toUTF8 returns data as UTF-8 without a byte order mark. It converts UTF-16 with a byte order mark, as Windows writes
// it.
func toUTF8(data []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	}
	if order != nil {
		if len(data)%2 != 0 {
			return nil, errors.New("UTF-16 text with half a character at its end")
		}
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = order.Uint16(data[2*i:])
		}
		data = []byte(string(utf16.Decode(units)))
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			return nil, fmt.Errorf("%s: byte 0x%02x; must be text in UTF-8, or in UTF-16 with a byte order mark",
				position(data, i), data[i])
		}
		i += size
	}
	return data, nil
}

// locate adds the position to errors of decoders that do not print it.
func locate(data []byte, err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		// Offset counts the wrong byte.
		return fmt.Errorf("%s: %s", position(data, max(0, int(e.Offset)-1)), inWords(e.Error()))
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := position(data, max(0, int(e.Offset)-1))
		if digits, ok := strings.CutPrefix(e.Value, "number "); ok {
			return fmt.Errorf("%s: %s is too large for a number", at, digits)
		}
		return fmt.Errorf("%s: must be sections with keys, not %s", at, e.Value)
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		return fmt.Errorf("line %d, column %d: %s", line, column, inWords(err.Error()))
	}
	said := inWords(err.Error())
	if strings.HasPrefix(err.Error(), "yaml: ") && !strings.HasPrefix(said, "line ") {
		said = "line 1: " + said // where the decoder names none
	}
	return errors.New(said)
}

// position returns the line and the column, both from 1, of the byte at offset.
func position(data []byte, offset int) string {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte{'\n'})
	return fmt.Sprintf("line %d, column %d", 1+line, 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]))
}
