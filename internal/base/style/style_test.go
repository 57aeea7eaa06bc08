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

func TestWhatIsNoTerminalIsPlain(t *testing.T) {
	if s := Of(new(bytes.Buffer)); s != (Style{}) || s.Red("x") != "x" {
		t.Errorf("%+v, %q", s, s.Red("x"))
	}
	if got := (Style{}).Colours().Bold("x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}
