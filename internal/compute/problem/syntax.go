package problem

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word of an expression.
type token struct {
	text   string
	start  int // in bytes
	column int // from 1, in characters
}

// length returns the length in bytes of the token with which text begins: a number with what is written close to it, a
// name, an operator of this or another language, or any other character.
func length(text string) int {
	run := func(from int, belongs func(rune) bool) int {
		if n := strings.IndexFunc(text[from:], func(r rune) bool { return !belongs(r) }); n >= 0 {
			return from + n
		}
		return len(text)
	}
	digit := func(r rune) bool { return '0' <= r && r <= '9' }
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) }
	wordOrDigit := func(r rune) bool { return word(r) || unicode.IsDigit(r) }
	if len(text) > 2 && text[0] == '0' && strings.ContainsRune("xXbBoO", rune(text[1])) {
		if n := run(2, wordOrDigit); n > 2 {
			return n
		}
	}
	if (token{text: text}).isNumber() {
		n := run(0, func(r rune) bool { return r == '.' || r == '_' || digit(r) })
		if n < len(text) && text[n]|0x20 == 'e' {
			begin := n + 1
			if begin < len(text) && (text[begin] == '-' || text[begin] == '+') {
				begin++
			}
			if end := run(begin, digit); end > begin {
				n = end
			}
		}
		return run(n, word)
	}
	first, size := utf8.DecodeRuneInString(text)
	if first == '$' || word(first) {
		return run(0, func(r rune) bool { return r == '$' || wordOrDigit(r) })
	}
	for _, operator := range []string{"===", "=<", "=>", "<>", "~=", "^^", "&&", "||", "==", "!=", "<=", ">=", "**"} {
		if strings.HasPrefix(text, operator) {
			return len(operator)
		}
	}
	return size
}

// tokens splits text. It fails at the first token that no expression has.
func tokens(text string) (list []token, err error) {
	for at, column := 0, 1; at < len(text); column++ {
		if strings.ContainsRune(" \t\r\n\f", rune(text[at])) {
			at++
			continue
		}
		t := token{text[at : at+length(text[at:])], at, column}
		if fault := t.mistake(); fault != "" {
			return nil, fmt.Errorf("column %d: %s", t.column, fault)
		}
		list = append(list, t)
		at += len(t.text)
		column += utf8.RuneCountInString(t.text) - 1
	}
	if len(list) == 0 {
		return nil, errors.New("a number or an expression is missing")
	}
	return list, nil
}

// instead returns what expressions write for an operator of other languages, or "".
func instead(operator string) string {
	switch operator {
	case "=", "===":
		return "=="
	case "&":
		return "&&"
	case "=<", "≤":
		return "<="
	case "=>", "≥":
		return ">="
	case "<>", "~=", "≠":
		return "!="
	case "^^":
		return "^"
	case "²":
		return "^2"
	case "³":
		return "^3"
	case "·", "×":
		return "*"
	case "÷":
		return "/"
	case "−", "–":
		return "-"
	case "AND", "And", "OR", "Or", "NOT", "Not":
		return strings.ToLower(operator)
	}
	return ""
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
	case t.isNumber():
		return t.badNumber()
	case t.text == `"`, t.text == "'":
		return "an expression has no text in quotes"
	case size == len(t.text) && !unicode.IsLetter(first) && !strings.ContainsRune("+-*/%^<>!?:.,()", first):
		return t.text + " is not allowed in an expression"
	}
	return ""
}

// choice says how a choice is written.
const choice = "a choice is written condition ? value : value"

// number returns the value of a token that is a number.
func (t token) number() (float64, error) {
	if len(t.text) > 1 && t.text[0] == '0' && unicode.IsLetter(rune(t.text[1])) && t.text[1]|0x20 != 'e' {
		v, err := strconv.ParseInt(t.text, 0, 64)
		return float64(v), err
	}
	if !t.isNumber() {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(t.text, 64)
}

// badNumber says what is wrong with a number, or "".
func (t token) badNumber() string {
	_, err := t.number()
	digits := strings.TrimRightFunc(t.text, unicode.IsLetter)
	switch {
	case err == nil:
		return ""
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

// isNumber and isName report the kind of a token; isValue whether a value begins with it.

func (t token) isNumber() bool {
	digit, _ := utf8.DecodeRuneInString(strings.TrimPrefix(t.text, "."))
	return '0' <= digit && digit <= '9'
}

func (t token) isName() bool {
	first, _ := utf8.DecodeRuneInString(t.text)
	return !t.operator() && (unicode.IsLetter(first) || first == '_' || first == '$')
}

func (t token) isValue() bool { return t.isNumber() || t.isName() }

// operator reports whether t needs a value behind it.
func (t token) operator() bool {
	return t.text != "" && strings.Contains("+-*/%^<>!=&|?:,(", t.text[:1]) ||
		slices.Contains([]string{".", "and", "or", "not"}, t.text)
}

// unexpected fails at the next token, which cannot follow the tokens before it.
func (c *compiler) unexpected() {
	if c.err != nil {
		return
	}
	before := c.tokens[:c.next]
	if c.next == len(c.tokens) {
		c.unfinished(before)
		return
	}
	var last token
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	t, after, value := c.tokens[c.next], c.tokens[c.next+1:], len(before) > 0 && !last.operator()
	open := opened(before)
	has := func(text string) bool { return slices.ContainsFunc(open, func(t token) bool { return t.text == text }) }
	switch {
	case !value && (t.isValue() || t.text == "("), t.text == "." && value:
		c.fail(t, "%s is not expected here", t.text)
	case !value:
		c.fail(t, "a value is missing before %s", t.text)
	case t.text == "," && last.isNumber() && len(after) > 2 && after[0].isNumber() && after[1].text == "," &&
		after[2].isNumber():
		c.fail(t, "a number has no commas")
	case t.text == "," && last.isNumber() && len(after) > 0 && after[0].isNumber():
		c.fail(t, "a comma stands only between the arguments of a function%s", meant(last.text+"."+after[0].text))
	case t.text == ",":
		c.fail(t, "a comma stands only between the arguments of a function")
	case last.isNumber() && t.isNumber():
		c.fail(t, "a number has no spaces%s", meant(last.text+t.text))
	case t.text == ")" && !has("("):
		c.fail(t, "this ) has no (")
	case t.text == ":" && !has("?"):
		c.fail(t, "this : has no ?")
	case t.text == ")", t.text == ":":
		c.unclosed(open[len(open)-1])
	case t.text == "!", t.text == "not":
		c.fail(t, "an operator, such as and, is missing before %s", t.text)
	case last.isNumber() && t.isName() && !slices.Contains(Names(), t.text) && !isFunction(t.text):
		c.fail(t, "an operator, such as *, is missing before %s; numbers have no units", t.text)
	default:
		c.fail(t, "an operator, such as *, is missing before %s", t.text)
	}
}

// meant asks whether number is meant, if it is one.
func meant(number string) string {
	if t := (token{text: number}); t.badNumber() != "" {
		return ""
	}
	return "; is " + number + " meant?"
}

// unfinished fails at the end of all tokens, where something is missing.
func (c *compiler) unfinished(all []token) {
	if last := all[len(all)-1]; last.operator() {
		c.fail(last, "a value is missing after %s", last.text)
		return
	}
	open := opened(all)
	c.unclosed(open[len(open)-1])
}

// opened returns the parentheses of list that are not closed, and each ? without its :.
func opened(list []token) (open []token) {
	for _, t := range list {
		switch t.text {
		case "(", "?":
			open = append(open, t)
		case ")", ":":
			open = open[:len(open)-1]
		}
	}
	return open
}

// unclosed fails at a token that opened returns.
func (c *compiler) unclosed(t token) {
	if t.text == "(" {
		c.fail(t, "this ( is not closed")
		return
	}
	c.fail(t, "%s", choice)
}
