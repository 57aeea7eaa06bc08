package show

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"node-1, Zürich: 2 × H200 'a'": "node-1, Zürich: 2 × H200 'a'",
		`back\slash "quoted"`:          `back\slash "quoted"`,
		"\x1b]0;title\a\x1b[2J":        `\x1b]0;title\a\x1b[2J`,
		"a\r\nb\tc":                    `a\r\nb\tc`,
		"\u009b31m\x7f\U000e0001":      `\u009b31m\u007f\udb40\udc01`,
		"gpj.\u202eexe":                `gpj.\u202eexe`,
		"\u2066a\u2069\u200b\u2028":    `\u2066a\u2069\u200b\u2028`,
		"\xff\xc3":                     `\xff\xc3`,
		"\ufffd":                       "\ufffd",
		strings.Repeat("é", 201):       strings.Repeat("é", 200) + "…",
		strings.Repeat("é", 200):       strings.Repeat("é", 200),
		strings.Repeat("\x1b", 201):    strings.Repeat(`\x1b`, 200) + "…",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Cut("abc", 2); got != "ab…" {
		t.Errorf("cut to 2: %q", got)
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"a line\nanother\tone\n":     "a line\nanother\tone\n",
		"50% \x1b[31mred\x1b[0m\r ü": `50% \x1b[31mred\x1b[0m\r ü`,
		"\u202e\xff\x00":             `\u202e\xff\x00`,
		strings.Repeat("é", 300):     strings.Repeat("é", 300),
	} {
		if got := Lines(text); got != want {
			t.Errorf("Lines(%q) = %q, want %q", text, got, want)
		}
		var b strings.Builder
		if err := Fprint(&b, text); err != nil || b.String() != want {
			t.Errorf("Fprint(%q) wrote %q, %v", text, b.String(), err)
		}
		if got := string(AppendLines([]byte("[0] "), []byte(text))); got != "[0] "+want {
			t.Errorf("AppendLines(%q) = %q", text, got)
		}
	}
}

func TestValues(t *testing.T) {
	long := strings.Repeat("a", 299)
	for message, want := range map[string]string{
		`grid.nx "5 x": must be an integer`: `grid.nx "5 x": must be an integer`,
		`problem.left "` + long + ` b": column 1: unknown`: `problem.left "` + long[:119] + " … " + long[:37] +
			` b" (303 characters): column 1: unknown`,
		"unknown key " + long + " (--set)": "unknown key " + long[:120] + " … " + long[:40] +
			" (299 characters) (--set)",
		`a "quote that does not end`: `a "quote that does not end`,
	} {
		if got := Values(message); got != want {
			t.Errorf("%q became\n%q, want\n%q", message, got, want)
		}
	}
}
