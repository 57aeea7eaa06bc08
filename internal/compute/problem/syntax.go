package problem

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
)

// syntax explains in the user's words why the parser refused text with err.
func syntax(text string, err error) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("a number or an expression is missing")
	}
	list := tokens(text)
	for _, t := range list {
		if fault := t.mistake(); fault != "" {
			return fmt.Errorf("column %d: %s", t.column, fault)
		}
	}
	var at *file.Error
	if !errors.As(err, &at) {
		return err
	}
	if strings.Contains(at.Message, "EOF") {
		return unfinished(list)
	}
	for i, t := range list {
		if t.column == at.From+1 {
			return fmt.Errorf("column %d: %s", t.column, unexpected(list[:i], t, list[i+1:]))
		}
	}
	return fmt.Errorf("column %d: %s", at.Column+1, at.Message)
}

// token is a word of an expression.
type token struct {
	text   string
	column int // from 1, in characters
}

// split matches a token: a number with what is written close to it, a name, an operator of this or another language, or
// any other character. Only errors need it.
var split = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`0[xXbBoO][\pL\p{Nd}_]+|[0-9.][0-9._]*(?:[eE][-+]?[0-9]+)?[\pL_]*|` +
		`[\pL_$][\pL\p{Nd}_$]*|` +
		`===|=<|=>|<>|~=|\^\^|&&|\|\||==|!=|<=|>=|\*\*|\S`)
})

func tokens(text string) (list []token) {
	for _, at := range split().FindAllStringIndex(text, -1) {
		list = append(list, token{text[at[0]:at[1]], utf8.RuneCountInString(text[:at[0]]) + 1})
	}
	return list
}

// instead returns what expressions write for an operator of other languages, or "".
func instead(operator string) string {
	return map[string]string{
		"=": "==", "===": "==", "&": "&&", "=<": "<=", "=>": ">=", "<>": "!=", "~=": "!=", "≠": "!=",
		"≤": "<=", "≥": ">=", "^^": "^", "²": "^2", "³": "^3", "·": "*", "×": "*", "÷": "/",
		"−": "-", "–": "-",
		"AND": "and", "And": "and", "OR": "or", "Or": "or", "NOT": "not", "Not": "not",
	}[operator]
}

// mistake says what is wrong with a token that no expression has, or "".
func (t token) mistake() string {
	if better := instead(t.text); better != "" {
		return fmt.Sprintf("%s is not an operator; did you mean %s?", t.text, better)
	}
	switch first, size := utf8.DecodeRuneInString(t.text); {
	case t.text == "if", t.text == "else":
		return choice
	case t.text == "√":
		return "√ is not an operator; did you mean sqrt(…)?"
	case t.text == "|":
		return "| is not an operator; write || for or, and abs(…) for the absolute value"
	case unicode.IsDigit(first):
		return t.badNumber()
	case size == len(t.text) && !unicode.IsLetter(first) && !strings.ContainsRune("+-*/%^<>!?:.,()", first):
		return t.text + " is not allowed in an expression"
	}
	return ""
}

// choice says how a choice is written.
const choice = "a choice is written condition ? value : value"

// badNumber says what is wrong with a number, or "".
func (t token) badNumber() string {
	digits := strings.TrimRightFunc(t.text, unicode.IsLetter)
	_, whole := strconv.ParseInt(t.text, 0, 64)
	_, err := strconv.ParseFloat(t.text, 64)
	switch {
	case whole == nil || err == nil && strings.ContainsAny(t.text, ".eE"):
		return ""
	case err == nil:
		return fmt.Sprintf("%s is too large for a whole number; write %s.0", t.text, t.text)
	case errors.Is(err, strconv.ErrRange):
		return t.text + " is too large"
	case digits != t.text && !strings.HasPrefix(t.text, "0x") && t.text != digits+"e" && strings.Count(digits, ".") < 2:
		if word := t.text[len(digits):]; slices.Contains(Names(), word) || isFunction(word) {
			return fmt.Sprintf("%s is not a number; did you mean %s*%s?", t.text, digits, word)
		}
		return fmt.Sprintf("%s is not a number; numbers have no units, and * stands before a name", t.text)
	}
	return t.text + " is not a number"
}

// operator reports whether t needs a value behind it.
func (t token) operator() bool {
	return strings.Contains("+-*/%^<>!=&|?:,(", t.text[:1]) || slices.Contains([]string{"and", "or", "not"}, t.text)
}

// unfinished says what is missing at the end of an expression.
func unfinished(list []token) error {
	if last := list[len(list)-1]; last.operator() {
		return fmt.Errorf("column %d: a value is missing after %s", last.column, last.text)
	}
	var open []token
	for _, t := range list {
		switch {
		case strings.Contains("([{", t.text):
			open = append(open, t)
		case strings.Contains(")]}", t.text) && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t := open[len(open)-1]
		return fmt.Errorf("column %d: this %s is not closed", t.column, t.text)
	}
	for _, t := range list {
		if t.text == "?" {
			return fmt.Errorf("column %d: %s", t.column, choice)
		}
	}
	return errors.New("the end is missing")
}

// unexpected says why t cannot follow the tokens before it.
func unexpected(before []token, t token, after []token) string {
	var last token
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	value := len(before) > 0 && !last.operator()
	switch {
	case t.text == "," && value && len(after) > 0 && isNumber(last.text) && isNumber(after[0].text):
		return fmt.Sprintf("a comma stands only between the arguments of a function; is %s.%s meant?", last.text,
			after[0].text)
	case t.text == "," && value:
		return "a comma stands only between the arguments of a function"
	case value && isNumber(last.text) && isNumber(t.text):
		return fmt.Sprintf("a number has no spaces; is %s%s meant?", last.text, t.text)
	case t.text == ")" && value:
		return "this ) has no ("
	case t.operator() && t.text != "(", t.text == ")":
		return "a value is missing before " + t.text
	case isFunction(last.text):
		return fmt.Sprintf("%s takes its arguments in parentheses: %s(…)", last.text, last.text)
	case value:
		return fmt.Sprintf("an operator, such as *, is missing before %s", t.text)
	}
	return t.text + " is not expected here"
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}
