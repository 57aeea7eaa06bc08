// Package show makes text from other programs and users safe to show: names of hosts and files, messages of a server,
// lines of another program. Control characters in such text can change a terminal's title, overwrite earlier lines or
// make the terminal type input. Characters that change the direction of writing can disguise a name.
package show

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxText is how many characters of such text a message shows.
const maxText = 200

// Text returns s in one line for use within a message. Everything but visible characters and spaces, bytes that are not
// UTF-8 included, becomes an escape of Go (\x1b, \n, \u202e), and a long text is cut.
func Text(s string) string { return Cut(s, maxText) }

// Cut is Text with at most n characters of s; an ellipsis replaces the rest.
func Cut(s string, n int) string {
	var b strings.Builder
	for i := 0; len(s) > 0; i++ {
		if i == n {
			return b.String() + "…"
		}
		_, size := utf8.DecodeRuneInString(s)
		b.Write(appendVisible(nil, s[:size]))
		s = s[size:]
	}
	return b.String()
}

// Lines returns all of s. It keeps line ends and tabs and escapes other characters as Text does.
func Lines(s string) string {
	if plain(s) {
		return s
	}
	return string(AppendLines(nil, s))
}

// AppendLines appends Lines(s) to b.
func AppendLines[T string | []byte](b []byte, s T) []byte {
	for len(s) > 0 {
		size := 1
		if s[0] >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
		}
		if s[0] == '\n' || s[0] == '\t' {
			b = append(b, s[0])
		} else {
			b = appendVisible(b, string(s[:size]))
		}
		s = s[size:]
	}
	return b
}

// Fprint writes Lines(s) to w in one write.
func Fprint(w io.Writer, s string) error {
	_, err := io.WriteString(w, Lines(s))
	return err
}

// JSON writes v to w, indented.
func JSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return Fprint(w, b.String())
}

// plain reports whether s consists of visible ASCII characters, spaces, line ends and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// appendVisible appends char, which is one character, or one byte that is not UTF-8. The escapes of characters that may
// stand unescaped in a JSON string are valid in JSON, so a line of JSON remains valid.
func appendVisible(b []byte, char string) []byte {
	r, _ := utf8.DecodeRuneInString(char)
	switch {
	case r == utf8.RuneError && len(char) == 1:
		return fmt.Appendf(b, `\x%02x`, char[0])
	case strconv.IsGraphic(r):
		return append(b, char...)
	case r < ' ':
		quoted := strconv.AppendQuoteRune(nil, r)
		return append(b, quoted[1:len(quoted)-1]...)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		b = fmt.Appendf(b, `\u%04x`, unit)
	}
	return b
}

// Bounds in characters: Values keeps a value of at most wholeValue whole, and the head and tail of a longer one.
const (
	wholeValue = 250
	valueHead  = 120
	valueTail  = 40
)

// values matches the parts of a message that may repeat the user's input: quoted text, and words.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"]+`)

// Values cuts the middle out of overlong values in a message, which keeps the message readable.
func Values(message string) string {
	return values.ReplaceAllStringFunc(message, func(v string) string {
		n := utf8.RuneCountInString(v)
		if n <= wholeValue {
			return v
		}
		r := []rune(v)
		return fmt.Sprintf("%s … %s (%d characters)", string(r[:valueHead]), string(r[n-valueTail:]), n)
	})
}
