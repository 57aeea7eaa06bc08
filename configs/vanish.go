package configs

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const leastNumber = "is too small for a number: 0, or 4.9e-324 and up are allowed"

// vanishes reports whether text is a number other than 0 that rounds to 0. ParseFloat makes 0 of it without an error.
func vanishes(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return err == nil && f == 0 && strings.ContainsAny(mantissa, "123456789")
}

// numberValue matches a key with a number that has a negative exponent, in YAML, TOML and JSON.
var numberValue = regexp.MustCompile(`(?m)^[^#\n]*?([A-Za-z_.]+)"?[ \t]*[:=][ \t]*([-+]?[0-9.]+[eE]-[0-9]+)`)

// vanishing refuses a run file with a number other than 0 that its decoder would round to 0.
func vanishing(data []byte) error {
	for _, at := range numberValue.FindAllSubmatchIndex(data, -1) {
		if key, value := data[at[2]:at[3]], string(data[at[4]:at[5]]); vanishes(value) {
			return fmt.Errorf("line %d: %s %s %s", 1+bytes.Count(data[:at[4]], []byte{'\n'}), key, value, leastNumber)
		}
	}
	return nil
}
