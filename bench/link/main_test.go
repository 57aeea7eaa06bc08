package main

import "testing"

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{"1e9": 1e9, "1gbit": 1e9, "2.5gbit": 2.5e9, "100mbit": 1e8, "64kbit": 64e3,
		"0.5": 0.5} {
		if got, err := parseRate(s); got != want || err != nil {
			t.Errorf("%s: %g, %v; want %g", s, got, err, want)
		}
	}
	for _, s := range []string{"", "gbit", "fast", "0", "-1gbit", "1gbits", "1 gbit", "NaN", "inf", "1infgbit"} {
		want := `rate "` + s + `": a positive number of bits a second, kbit, mbit or gbit is allowed`
		if got, err := parseRate(s); err == nil || err.Error() != want {
			t.Errorf("%q: %g, %v; want %s", s, got, err, want)
		}
	}
}
