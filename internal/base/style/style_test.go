package style

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// Text on a terminal has colours, but not on one without a width, as mpirun gives its ranks.
func TestTerminals(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for width, want := range map[uint16]Style{0: {}, 80: {Width: 80, colour: true}} {
		if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width}); err != nil {
			t.Fatal(err)
		}
		if got := Of(f); got != want || IsTerminal(f) != (width > 0) {
			t.Errorf("%d columns: got %+v and terminal %t, want %+v", width, got, IsTerminal(f), want)
		}
	}
}
