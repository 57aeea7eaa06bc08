package suggest

import "testing"

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
