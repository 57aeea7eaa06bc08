package show

import (
	"fmt"
	"regexp"
	"unicode/utf8"
)

// The longest value that a message shows whole, and what it shows of a longer one.
const (
	wholeValue = 250
	valueHead  = 120
	valueTail  = 40
)

// values are what a message may repeat of its reader's input: text in quotes, and words.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"]+`)

// Values returns a message with the middle of overlong values cut out, so that what is wrong with them can be seen.
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
