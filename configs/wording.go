package configs

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// decoderWords pairs what decoders of YAML, TOML and JSON say of a mistake with what it means to the user.
var decoderWords = [][2]string{
	{`(?:unable to parse float|couldn't parse \w+ number): strconv\.\w+: parsing "([^"]*)": value out of range`,
		"$1 is too large for a number"},
	{`(?:unable to parse float|couldn't parse \w+ number): strconv\.\w+: parsing "([^"]*)": .*`, "$1 is not a number"},
	{`incomplete number`, "a value is missing: a number, true, false, or text in quotes"},
	{`expected newline but got U\+[0-9A-F]+ (.+)`, "$1 stands behind the value"},
	{`basic strings cannot have new lines`, "the quote is not closed"},
	{`invalid character (.+) looking for beginning of object key string`,
		"$1 in the place of a key, which has double quotes"},
	{`invalid character (.+) looking for beginning of value`, "$1 in the place of a value; text has double quotes"},
	{`invalid character (.+) after object key:value pair`, "$1 in the place of a comma or }"},
	{`invalid character (.+) after object key`, "$1 in the place of a colon"},
	{`invalid character (.+) after array element`, "$1 in the place of a comma or ]"},
	{`invalid character (.+) after top-level value`, "$1 after the end"},
	{`invalid character (.+) in literal .*`, "$1 in a word that is not true, false or null; text has double quotes"},
	{`invalid character .* exceeded max depth`, tooDeep},
	{`unexpected end of JSON input`, "the end is missing: a }, a ] or a quote"},
	{`found character that cannot start any token`,
		"a value cannot begin like this; text with @, % or ` has quotes, and lines are indented with spaces, not tabs"},
	{`mapping values are not allowed in this context`,
		"a colon is not expected here; is that of the line above missing? Text with a colon has quotes"},
	{`did not find expected ',' or '([]}])'`, "a comma or $1 is missing; text with : ? , { or [ has quotes"},
	{`did not find expected key`, "a key is missing; all keys of a section are indented alike"},
	{`did not find expected node content`, "a value or a bracket is missing"},
	{`did not find expected (?:whitespace or line break|tag URI)`, "text that begins with ! has quotes"},
	{`found unexpected end of stream`, "a quote is not closed"},
	{`could not find expected ':'`, "a colon is missing"},
	{`unmarshal errors:\n\s*(line \d+): mapping key ("[^"]*") already defined at (line \d+)(?s:.*)`,
		"$1: the key $2 is given twice, also in $3"},
}

// inWords returns what a decoder says, in the user's words.
func inWords(said string) string {
	said = strings.TrimPrefix(strings.TrimPrefix(said, "yaml: "), "toml: ")
	for _, w := range decoderWords {
		if r := regexp.MustCompile(w[0]); r.MatchString(said) {
			return r.ReplaceAllString(said, w[1])
		}
	}
	return said
}

// notNumber returns an error that says that raw is not what it must be: a number of some kind. It guesses what is
// meant.
func notNumber(raw any, must string) error {
	text, _ := raw.(string)
	bare := strings.TrimSpace(strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzµABCDEFGHIJKLMNOPQRSTUVWXYZ%°² "))
	point := strings.Replace(text, ",", ".", 1)
	digits := strings.NewReplacer(",", "", "_", "", " ", "", "'", "").Replace(text)
	power := strings.Replace(text, "10^", "1e", 1)
	f, isNumber := toFloat(text)
	_, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("it is too large for a number")
	case isNumber && f != math.Trunc(f) || text == "":
	case must == mustInteger && isDigits(digits):
		return fmt.Errorf("%s; is %s meant?", must, digits)
	case must == mustNumber && point != text && isFloat(point):
		return fmt.Errorf("%s, with a point, as in %s", must, point)
	case power != text && isFloat(power):
		return fmt.Errorf("%s, as in %s", must, power)
	case bare != text && isFloat(bare):
		return fmt.Errorf("%s, without a unit", must)
	}
	return errors.New(must)
}

const (
	mustInteger = "must be an integer"
	mustNumber  = "must be a number"
)

func isFloat(text string) bool {
	_, ok := toFloat(text)
	return ok
}

func isDigits(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}
