package style

import (
	"bytes"
	"strings"
	"testing"
)

func TestParagraph(t *testing.T) {
	text := strings.Repeat("123456789 ", 9) + " abcd efghi"
	want := "head: " + strings.Repeat("123456789 ", 9) + "abcd\n      efghi"
	if got := Paragraph("head: ", text, 6, 100); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Paragraph("", "abc abcdefgh a", 2, 5); got != "abc\n  abcdefgh\n  a" {
		t.Errorf("%q", got)
	}
}

// A line that fits stays as it is, and no word is broken.
func TestFold(t *testing.T) {
	const text = "ab  cd\n  one two three four five\n\nx /a/very/long/path/without/spaces y"
	const want = "ab  cd\n  one two\n    three four\n    five\n\nx\n  /a/very/long/path/without/spaces\n  y"
	if got := Fold(text, 14); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsNoTerminalIsPlain(t *testing.T) {
	if s := Of(new(bytes.Buffer)); s != (Style{}) || s.Red("x") != "x" {
		t.Errorf("%+v, %q", s, s.Red("x"))
	}
	if got := (Style{colour: true}).Bold("x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}
