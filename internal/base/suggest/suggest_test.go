package suggest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "top", 3}, {"top", "", 3}, {"tpo", "top", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
		{"breite", "bréite", 1}, {"ab", "ba", 1}, {"abcd", "badc", 2},
		{"top", strings.Repeat("x", 1<<20), 1 << 20},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	functions := []string{"sin", "acos", "asin", "round", "floor"}
	for _, c := range []struct {
		word, want string
		ok         bool
	}{
		{"sinn", "sin", true}, {"arcsin", "asin", true}, {"rounds", "round", true}, {"si", "sin", true},
		{"random", "round", false}, {"foo", "sin", false},
	} {
		got, ok := Nearest(c.word, functions)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %q, %v; want %q, %v", c.word, got, ok, c.want, c.ok)
		}
	}
	if got, ok := Nearest("x", nil); ok {
		t.Errorf("%q is near, of no words", got)
	}
}
