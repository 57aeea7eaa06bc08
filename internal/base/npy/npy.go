// Package npy reads the headers of NumPy's .npy files.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"jacobi/internal/base/show"
)

// Header is the header of a .npy file.
type Header struct {
	Descr   string // "<f4"
	Fortran bool
	Shape   string // "(ny, nx)", in Python's spelling
	Size    int64  // bytes before the array
}

// maxHeader is far above the size of a header of an array of numbers.
const maxHeader = 1 << 16

var errNotNPY = errors.New("not a .npy file")

// ReadHeader reads the header of format version 1, 2 or 3 from the start of r.
func ReadHeader(r io.Reader) (Header, error) {
	var fixed [12]byte
	if _, err := io.ReadFull(r, fixed[:10]); err != nil || string(fixed[:6]) != "\x93NUMPY" {
		return Header{}, errNotNPY
	}
	start, length := int64(10), int64(binary.LittleEndian.Uint16(fixed[8:]))
	switch major := fixed[6]; major {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, fixed[10:]); err != nil {
			return Header{}, errNotNPY
		}
		start, length = 12, int64(binary.LittleEndian.Uint32(fixed[8:]))
	default:
		return Header{}, fmt.Errorf("format version %d.%d; 1.0, 2.0 and 3.0 can be read", major, fixed[7])
	}
	if length > maxHeader {
		return Header{}, fmt.Errorf("a header of %d bytes; at most %d are allowed", length, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return Header{}, errors.New("truncated in its header")
	}
	h, err := parseHeader(string(text))
	h.Size = start + length
	return h, err
}

// parseHeader reads a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }.
func parseHeader(text string) (Header, error) {
	// Compiled here and not once per program, because a run opens at most one file.
	item := regexp.MustCompile(`^\s*['"](\w+)['"]\s*:\s*(True|False|'[^']*'|"[^"]*"|\([^()]*\)|\[.*\])\s*(,|$)`)
	body := strings.TrimSpace(text)
	body, open := strings.CutPrefix(body, "{")
	body, closed := strings.CutSuffix(body, "}")
	if !open || !closed {
		return Header{}, fmt.Errorf(`header "%s" is no dictionary`, show.Text(text))
	}
	values := map[string]string{}
	for strings.TrimSpace(body) != "" {
		m := item.FindStringSubmatch(body)
		if m == nil {
			return Header{}, fmt.Errorf(`header "%s" cannot be understood`, show.Text(text))
		}
		if _, twice := values[m[1]]; twice {
			return Header{}, fmt.Errorf(`header "%s" has %s twice`, show.Text(text), show.Text(m[1]))
		}
		values[m[1]] = m[2]
		body = body[len(m[0]):]
	}
	descr, order := values["descr"], values["fortran_order"]
	shape, err := parseShape(values["shape"])
	if len(values) != 3 || descr == "" || err != nil || order != "True" && order != "False" {
		return Header{}, fmt.Errorf(`header "%s": it must have descr, fortran_order and shape`, show.Text(text))
	}
	return Header{Descr: strings.Trim(descr, `'"`), Fortran: order == "True", Shape: shape}, nil
}

// parseShape returns the tuple in Python's canonical spelling.
func parseShape(tuple string) (string, error) {
	inner, open := strings.CutPrefix(tuple, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !open || !closed {
		return "", strconv.ErrSyntax
	}
	var sides []string
	words := strings.Split(inner, ",")
	for i, word := range words {
		word = strings.TrimSpace(word)
		if word == "" && i == len(words)-1 {
			break // a trailing comma
		}
		n, err := strconv.ParseUint(word, 10, 63)
		if err != nil {
			return "", err
		}
		sides = append(sides, strconv.FormatUint(n, 10))
	}
	return spelled(sides), nil
}

func spelled(sides []string) string {
	if len(sides) == 1 {
		return "(" + sides[0] + ",)"
	}
	return "(" + strings.Join(sides, ", ") + ")"
}

// sides returns those of the shape, but for sides of 1 if squeezed is set.
func (h Header) sides(squeezed bool) []string {
	return slices.DeleteFunc(strings.Split(strings.Trim(h.Shape, "(,)"), ", "), func(side string) bool {
		return side == "" || squeezed && side == "1"
	})
}

// Squeezed returns the shape without its sides of 1, as numpy.squeeze does: images often have one.
func (h Header) Squeezed() string { return spelled(h.sides(true)) }

// Dimensions returns the number of sides of the squeezed shape.
func (h Header) Dimensions() int { return len(h.sides(true)) }
