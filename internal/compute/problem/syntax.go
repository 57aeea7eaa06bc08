package problem

import (
	"errors"
	"fmt"
	"slices"
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

// operators are the tokens that are neither numbers nor names, those of two characters first.
var operators = []string{"&&", "||", "==", "!=", "<=", ">=", "**", "+", "-", "*", "/", "%", "^", "<", ">", "!", "?",
	":", ",", "(", ")"}

// tokens splits text. It fails at the first token that no expression has.
func tokens(text string) (list []token, err error) {
	for at, column := 0, 1; at < len(text); column++ {
		if strings.ContainsRune(" \t\r\n\f", rune(text[at])) {
			at++
			continue
		}
		t := token{text[at : at+length(text[at:])], at, column}
		if !t.isNumber() && !t.isWord() && !slices.Contains(operators, t.text) {
			return nil, fmt.Errorf("column %d: %s is not allowed in an expression", t.column, t.text)
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

// length returns the length in bytes of the token with which text begins: a number with what is written close to it, a
// word, an operator, or any other character.
func length(text string) int {
	run := func(from int, others string) int {
		for at, r := range text[from:] {
			if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(others, r) {
				return from + at
			}
		}
		return len(text)
	}
	switch t := (token{text: text}); {
	case t.isNumber():
		n := run(0, ".")
		if n < len(text) && text[n-1]|0x20 == 'e' && (text[n] == '-' || text[n] == '+') {
			n = run(n+1, "")
		}
		return n
	case t.isWord():
		return run(0, "")
	}
	for _, operator := range operators {
		if strings.HasPrefix(text, operator) {
			return len(operator)
		}
	}
	_, size := utf8.DecodeRuneInString(text)
	return size
}

// isNumber, isWord and isName report the kind of a token by its first characters.

func (t token) isNumber() bool {
	digit, _ := utf8.DecodeRuneInString(strings.TrimPrefix(t.text, "."))
	return '0' <= digit && digit <= '9'
}

func (t token) isWord() bool {
	first, _ := utf8.DecodeRuneInString(t.text)
	return first == '_' || unicode.IsLetter(first)
}

func (t token) isName() bool {
	return t.isWord() && !slices.Contains([]string{"and", "or", "not"}, t.text)
}

// unexpected fails at the next token, which cannot follow the tokens before it.
func (c *compiler) unexpected() {
	switch {
	case c.err != nil:
	case c.next == len(c.tokens):
		c.err = fmt.Errorf("column %d: the expression ends too early", 1+utf8.RuneCountInString(c.text))
	default:
		c.fail(c.tokens[c.next], "%s is not expected here", c.tokens[c.next].text)
	}
}
