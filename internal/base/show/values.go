package show

import (
	"fmt"
	"regexp"
	"unicode/utf8"
)

// Bounds in characters: Values keeps a value of at most wholeValue whole, and the head and tail of a longer one.
const (
	wholeValue = 250
	valueHead  = 120
	valueTail  = 40
)

// values matches the parts of a message that may repeat the user's input: quoted text, and words.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"]+`)

// Values cuts the middle out of overlong values in a message, which keeps the message readable.
func Values(message string) string {
	return values.ReplaceAllStringFunc(message, func(v string) string {
		n := utf8.RuneCountInString(v)
		if n <= wholeValue {
			return v
		}
		r := []rune(v)
		return fmt.Sprintf("%s … %s (%d characters)", string(r[:valueHead]), string(r[n-valueTail:]), n)
	})
}
