// Package show makes text that others wrote fit to be shown: names of hosts and files, words of a server, lines of
// another program. On a terminal, control characters change the title, move the cursor over what was said before, or
// answer in the user's place, and characters that turn the direction of writing make a name look like another one.
package show

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// most is how many characters of others' text stand within a message.
const most = 200

// Text returns s for the inside of a message, on one line: what is not a visible character or a space as an escape of
// Go (\x1b, \n, \u202e), bytes that are not UTF-8 as well, and long text cut.
func Text(s string) string { return Cut(s, most) }

// Cut is Text with at most n characters of s, with an ellipsis behind them if s has more.
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

// Lines returns s whole, its line ends and tabs kept and everything else as Text has it.
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

// Fprint writes Lines(s) to w in one piece.
func Fprint(w io.Writer, s string) error {
	_, err := io.WriteString(w, Lines(s))
	return err
}

// plain says whether s has nothing but visible ASCII, line ends and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// appendVisible appends one character, which is one byte if it is not UTF-8. What an encoder of JSON leaves as it is in
// a string becomes an escape of JSON, so that a line of JSON remains one.
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
