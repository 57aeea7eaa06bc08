package show_test

import (
	"strings"
	"testing"

	"jacobi/internal/base/show"
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
		if got := show.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	if got := show.Cut("abc", 2); got != "ab…" {
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
		if got := show.Lines(text); got != want {
			t.Errorf("Lines(%q) = %q, want %q", text, got, want)
		}
		var b strings.Builder
		if err := show.Fprint(&b, text); err != nil || b.String() != want {
			t.Errorf("Fprint(%q) wrote %q, %v", text, b.String(), err)
		}
		if got := string(show.AppendLines([]byte("[0] "), []byte(text))); got != "[0] "+want {
			t.Errorf("AppendLines(%q) = %q", text, got)
		}
	}
}
