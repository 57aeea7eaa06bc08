package style

import (
	"strings"
	"unicode/utf8"
)

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
