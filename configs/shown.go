package configs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"jacobi/internal/base/show"
)

// maxRunName is the number of characters for which messages and the title of a picture have room.
const maxRunName = 200

// shown refuses text with characters that would control the terminal on which it is shown.
func (v *validator) shown(c Config) {
	if n := utf8.RuneCountInString(c.Run.Name); n > maxRunName {
		v.fault("run.name %q: %d characters; at most %d are allowed", show.Cut(c.Run.Name, 20), n, maxRunName)
		return
	}
	for _, k := range keys() {
		if k.kind != text || strings.HasPrefix(k.name, "nats.") && k.name != "nats.rendezvous" {
			continue // an expression may span lines, and a key of nats may hold a secret
		}
		if value := k.text(c); strings.ContainsFunc(value, controls) {
			v.fault("%s \"%s\": control characters are not allowed", k.name, show.Text(value))
		}
	}
}

// controls reports whether a terminal may act on r: move the cursor, begin a line or change the direction of writing.
func controls(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
