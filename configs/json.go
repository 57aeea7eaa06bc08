package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Bounds of a document, far above those of any run.
const (
	maxDepth = 10   // sections and lists within one another
	maxNames = 5000 // keys

	tooDeep = "more than 10 sections within one another"
	tooMany = "more than 5000 keys"
)

// fault says what is wrong with a document, from the byte at offset.
type fault struct {
	offset int
	error
}

// DecodeLine decodes a JSON object that stands on a line of its own. Its errors name the column.
func DecodeLine(line []byte) (map[string]any, error) {
	if i := noText(line); i >= 0 {
		return nil, fmt.Errorf("column %d: byte 0x%02x; must be text in UTF-8", 1+utf8.RuneCount(line[:i]), line[i])
	}
	tree, err := decodeJSON(line)
	if f, ok := errors.AsType[fault](err); ok {
		return nil, fmt.Errorf("column %d: %w", 1+utf8.RuneCount(line[:f.offset]), f.error)
	}
	return tree, err
}

// jsonReader reads one JSON object, within the bounds, token by token: a decoder of whole objects takes the last of two
// equal keys, and 0 for numbers that are too small.
type jsonReader struct {
	data  []byte
	d     *json.Decoder
	names int // that were seen
}

// decodeJSON decodes a JSON object. Its errors are faults.
func decodeJSON(data []byte) (map[string]any, error) {
	r := jsonReader{data: data, d: json.NewDecoder(bytes.NewReader(data))}
	r.d.UseNumber()
	value, err := r.value(0)
	tree, ok := value.(map[string]any)
	if err == nil && !ok {
		err = r.fault(errors.New("must be an object with keys"))
	}
	if err == nil {
		if _, end := r.d.Token(); end != io.EOF {
			err = r.fault(errors.New("more after the end of the object"))
		}
	}
	return tree, err
}

// fault returns err as a fault behind the last token.
func (r *jsonReader) fault(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fault{len(r.data), errors.New("the end of the object is missing")}
	}
	return fault{int(r.d.InputOffset()), err}
}

// value returns the next value: text, a float64, true, false, nil, an object or, empty, an array. depth counts the
// objects and arrays around it.
func (r *jsonReader) value(depth int) (any, error) {
	token, err := r.d.Token()
	if err != nil {
		return nil, r.fault(err)
	}
	if depth == maxDepth && (token == json.Delim('{') || token == json.Delim('[')) {
		return nil, r.fault(errors.New(tooDeep))
	}
	switch token := token.(type) {
	case json.Number:
		f, ok := Number(token.String())
		if !ok {
			return nil, r.fault(fmt.Errorf("%s: must be %s", token, ANumber))
		}
		return f, nil
	case json.Delim:
		if token == '{' {
			return r.object(depth + 1)
		}
		for r.d.More() {
			if _, err := r.value(depth + 1); err != nil {
				return nil, err
			}
		}
		_, err := r.d.Token()
		return []any{}, r.end(err)
	}
	return token, nil
}

// object returns the rest of an object.
func (r *jsonReader) object(depth int) (any, error) {
	object := map[string]any{}
	for r.d.More() {
		token, err := r.d.Token()
		if err != nil {
			return nil, r.fault(err)
		}
		name, _ := token.(string) // the decoder takes no other key
		if r.names++; r.names > maxNames {
			return nil, r.fault(errors.New(tooMany))
		}
		if _, twice := object[name]; twice {
			return nil, r.fault(fmt.Errorf("the key %s is given twice", strconv.Quote(name)))
		}
		if object[name], err = r.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := r.d.Token()
	return object, r.end(err)
}

// end returns err, of a closing bracket, as a fault.
func (r *jsonReader) end(err error) error {
	if err != nil {
		return r.fault(err)
	}
	return nil
}
