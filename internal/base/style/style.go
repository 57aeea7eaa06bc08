// Package style says how text is shown on what it is written to: as wide as a terminal is, in colours if it has some.
package style

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Style is how text is shown. The zero value is plain and of any width, as for a file.
type Style struct {
	Width  int // columns; 0: any number
	colour bool
}

// Of returns the style of w. A terminal has colours unless NO_COLOR is set or TERM says that it cannot (no-color.org).
func Of(w io.Writer) Style {
	if width := columns(w); width > 0 {
		return Style{Width: width, colour: os.Getenv("NO_COLOR") == ""}
	}
	return Style{}
}

// IsTerminal says whether w is a terminal that can move its cursor.
func IsTerminal(w io.Writer) bool { return columns(w) > 0 }

// columns returns the width of a terminal that can move its cursor; else 0. mpirun gives ranks terminals without a
// width, and copies what they write to its own output, which may be a file.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Bold, Green, Yellow and Red return text in that way, where there are colours.

func (s Style) Bold(text string) string   { return s.in("1", text) }
func (s Style) Green(text string) string  { return s.in("32", text) }
func (s Style) Yellow(text string) string { return s.in("33", text) }
func (s Style) Red(text string) string    { return s.in("31", text) }

func (s Style) in(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Paragraph returns text behind a head in lines of at most width columns, without the end of the last. A longer word
// has a line alone, and further lines begin behind indent spaces.
func Paragraph(head, text string, indent, width int) string {
	var b strings.Builder
	b.WriteString(head)
	at := utf8.RuneCountInString(head)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// Fold returns text with each line of more than width columns broken between words. Its further lines begin two columns
// behind where it began.
func Fold(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if utf8.RuneCountInString(line) > width {
			words := strings.TrimLeft(line, " ")
			indent := len(line) - len(words)
			lines[i] = Paragraph(line[:indent], words, indent+2, width)
		}
	}
	return strings.Join(lines, "\n")
}
