package configs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a document, far above those of any run.
const (
	maxDepth = 10   // sections and lists within one another
	maxNames = 5000 // keys

	tooDeep = "more than 10 sections within one another"
	tooMany = "more than 5000 keys"
)

// jsonFault says what is wrong with a document, from the byte at offset.
type jsonFault struct {
	offset int
	text   string
}

// DecodeLine decodes a JSON object that stands on a line of its own. Its errors are in the user's words, and name the
// column.
func DecodeLine(line []byte) (map[string]any, error) {
	if i := noText(line); i >= 0 {
		return nil, fmt.Errorf("column %d: byte 0x%02x; must be text in UTF-8", 1+utf8.RuneCount(line[:i]), line[i])
	}
	tree, fault := decodeObject(line)
	if fault != nil {
		return nil, fmt.Errorf("column %d: %s", 1+utf8.RuneCount(line[:fault.offset]), fault.text)
	}
	return tree, nil
}

// decodeObject decodes a JSON object, which has no key twice, no number that would become another one, and is within
// the bounds.
func decodeObject(data []byte) (tree map[string]any, fault *jsonFault) {
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, ofJSON(err)
	}
	if tree == nil {
		return nil, &jsonFault{bytes.IndexByte(data, 'n'), "must be an object with keys, not null"}
	}
	return tree, checkObject(data)
}

// jsonWords are the user's words for what the decoder calls a value.
var jsonWords = map[string]string{"bool": "true or false", "string": "text", "array": "an array", "number": "a number"}

// ofJSON puts an error of the decoder into the user's words.
func ofJSON(err error) *jsonFault {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &jsonFault{max(0, int(e.Offset)-1), inWords(e.Error())} // Offset counts the wrong byte
	}
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return &jsonFault{0, inWords(err.Error())}
	}
	f := &jsonFault{max(0, int(e.Offset)-1), "must be an object with keys, not " + cmp.Or(jsonWords[e.Value], e.Value)}
	if digits, ok := strings.CutPrefix(e.Value, "number "); ok {
		f.text = digits + " is too large for a number"
	}
	return f
}

// checkObject checks what the decoder lets pass in data, which can be decoded.
func checkObject(data []byte) *jsonFault {
	type object map[string]bool // nil for an array
	var open []object
	var name string // of the last key
	names, isKey := 0, false
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		offset := int(d.InputOffset())
		token, err := d.Token()
		if err != nil {
			return nil // the end
		}
		offset += bytes.IndexFunc(data[offset:], func(r rune) bool { return !strings.ContainsRune(" \t\r\n,:", r) })
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
			if open = append(open, here); len(open) > maxDepth {
				return &jsonFault{offset, tooDeep}
			}
			isKey = here != nil
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			isKey = len(open) > 0 && open[len(open)-1] != nil
			continue
		}
		if number, ok := token.(json.Number); ok && vanishes(number.String()) {
			return &jsonFault{offset, fmt.Sprintf("%s %s %s", name, number, leastNumber)}
		}
		if isKey {
			name, _ = token.(string)
			if here[name] {
				return &jsonFault{offset, fmt.Sprintf("the key %q is given twice", name)}
			}
			if names++; names > maxNames {
				return &jsonFault{offset, tooMany}
			}
			here[name] = true
		}
		isKey = here != nil && !isKey
	}
}
