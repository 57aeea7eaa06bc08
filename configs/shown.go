package configs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"jacobi/internal/show"
)

// maxRunName is as many characters as a message and the title of a picture have room for.
const maxRunName = 200

// shown refuses names that would do something to the terminal on which they are shown.
func (v *validator) shown(c Config) {
	if n := utf8.RuneCountInString(c.Run.Name); n > maxRunName {
		v.fault("run.name %q: %d characters; at most %d are allowed", show.Cut(c.Run.Name, 20), n, maxRunName)
		return
	}
	for _, k := range keys() {
		if k.kind != text || strings.HasPrefix(k.name, "nats.") && k.name != "nats.rendezvous" {
			continue // an expression may have several lines, and a key of nats may hold a secret
		}
		if value := k.text(c); strings.ContainsFunc(value, controls) {
			v.fault("%s \"%s\": control characters are not allowed", k.name, show.Text(value))
		}
	}
}

// controls says whether a terminal takes r for an order: to move, to begin a line or to turn the direction of writing.
func controls(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
