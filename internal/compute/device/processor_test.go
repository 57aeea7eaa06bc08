package device

import "testing"

func TestProcessor(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: other\n": "AMD EPYC",
		"processor\t: 0\nBogoMIPS\t: 50.00\n": "processor",
	} {
		if got := processor(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
