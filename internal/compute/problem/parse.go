package problem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jacobi/configs"
)

// The levels at which operators bind, loosest first.
const (
	bindsOr = iota + 1
	bindsAnd
	bindsNot
	bindsComparison
	bindsSum
	bindsProduct
	bindsSign
	bindsPower
)

// binds returns the level of the operator between two values, or 0 if text is none.
func binds(text string) int {
	switch text {
	case "||", "or":
		return bindsOr
	case "&&", "and":
		return bindsAnd
	case "<", "<=", ">", ">=", "==", "!=":
		return bindsComparison
	case "+", "-":
		return bindsSum
	case "*", "/", "%":
		return bindsProduct
	case "^", "**":
		return bindsPower
	}
	return 0
}

// operand is a compiled part of an expression.
type operand struct {
	node
	first token // its first token
	end   int   // of its text, in bytes
}

// peek returns the next token: an empty one at the end and after a fault, so that parsing ends there.
func (c *compiler) peek() token {
	if c.err != nil || c.next == len(c.tokens) {
		return token{start: len(c.text)}
	}
	return c.tokens[c.next]
}

// take skips the next token if it is text.
func (c *compiler) take(text string) bool {
	found := c.peek().text == text
	if found {
		c.next++
	}
	return found
}

// expect skips text, or fails.
func (c *compiler) expect(text string) {
	if !c.take(text) {
		c.unexpected()
	}
}

// ended completes an operand that ends before the next token.
func (c *compiler) ended(n node, first token) operand {
	if c.err != nil {
		return operand{node: constant(0), first: first, end: first.start}
	}
	last := c.tokens[c.next-1]
	return operand{node: c.folded(n), first: first, end: last.start + len(last.text)}
}

// expression parses and compiles condition ? value : value, or what binds closer.
func (c *compiler) expression() operand {
	cond := c.operation(bindsOr)
	question := c.peek()
	if !c.take("?") {
		return cond
	}
	yes := c.expression()
	c.expect(":")
	no := c.expression()
	if yes.isBool != no.isBool {
		c.fail(question, "one branch gives a number and the other true or false")
	}
	return c.ended(choose(c.boolean(cond), yes.node, no.node), cond.first)
}

// operation parses and compiles operators that bind at the given level or closer.
func (c *compiler) operation(level int) operand {
	left := c.signed()
	for {
		operator := c.peek()
		at := binds(operator.text)
		if at < level || at == 0 {
			return left
		}
		c.next++
		switch at {
		case bindsComparison:
			left = c.comparisons(left, operator.text)
		case bindsPower: // groups from the right
			left = c.ended(c.binary(operator.text, left, c.operation(at)), left.first)
		default:
			left = c.ended(c.binary(operator.text, left, c.operation(at+1)), left.first)
		}
	}
}

// comparisons compiles a < b == c as a < b and b == c.
func (c *compiler) comparisons(left operand, operator string) operand {
	values, ops := []node{c.number(left)}, []comparison{}
	for {
		ops = append(ops, comparisonOf(operator))
		values = append(values, c.number(c.operation(bindsComparison+1)))
		operator = c.peek().text
		if binds(operator) != bindsComparison {
			return c.ended(compared(chain(values, ops)), left.first)
		}
		c.next++
	}
}

// signed parses and compiles a value with the signs before it.
func (c *compiler) signed() operand {
	first := c.peek()
	switch {
	case c.take("+"):
		return c.ended(c.number(c.operation(bindsSign)), first)
	case c.take("-"):
		a := c.number(c.operation(bindsSign))
		return c.ended(apply1(func(v float64) float64 { return -v },
			func(b bounds) bounds { return b.within(-b.hi, -b.lo) }, a), first)
	case c.take("!"), c.take("not"):
		a := c.boolean(c.operation(bindsNot))
		return c.ended(compared(apply1(func(v float64) float64 { return 1 - v },
			func(b bounds) bounds { return b.within(1-b.hi, 1-b.lo) }, a)), first)
	}
	return c.value()
}

// value parses and compiles a number, a name, a call, or an expression in parentheses.
func (c *compiler) value() operand {
	first := c.peek()
	if c.take("(") {
		inner := c.expression()
		c.expect(")")
		return c.ended(inner.node, first)
	}
	if first.isNumber() {
		v, ok := configs.Number(first.text)
		if !ok {
			c.fail(first, "%s must be %s", first.text, configs.ANumber)
		}
		c.next++
		return c.ended(constant(v), first)
	}
	if !first.isName() {
		c.unexpected()
		return c.ended(node{}, first)
	}
	c.next++
	if !c.take("(") {
		return c.ended(c.name(first), first)
	}
	var args []operand
	for !c.take(")") && c.err == nil {
		if len(args) > 0 {
			c.expect(",")
		}
		args = append(args, c.expression())
	}
	return c.ended(c.call(first, args), first)
}

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
