package configs

import (
	"bytes"
	"encoding/binary"
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
	if format == "json" {
		tree, fault := decodeObject(data)
		if fault != nil {
			return nil, fmt.Errorf("%s: %s", position(data, fault.offset), fault.text)
		}
		return tree, nil
	}
	if strings.HasPrefix(format, "y") {
		if err := checkYAML(data); err != nil {
			return nil, locate(data, err)
		}
	}
	if format == "toml" && bytes.Count(data, []byte{'='})+bytes.Count(data, []byte("\n[")) > maxNames {
		return nil, errors.New(tooMany) // of which each would be looked up among all before it
	}
	d, err := viper.NewCodecRegistry().Decoder(format)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	if err := d.Decode(data, tree); err != nil {
		return nil, locate(data, err)
	}
	return tree, vanishing(data)
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

// locate adds the position to errors of decoders that do not print it.
func locate(data []byte, err error) error {
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
