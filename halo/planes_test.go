package halo

import (
	"bytes"
	"slices"
	"testing"
)

// Processors with and without AVX make the same planes, and the same rows of them.
func TestPlanes(t *testing.T) {
	for n := range 60 {
		for size, c := range map[int]struct {
			divide, join func(to, from []byte, n int)
			some         func(planes, rows []byte, n, from, to int)
		}{4: {divide32, join32, divideSome32}, 8: {divide64, join64, divideSome64}} {
			rows := noise(size * n)
			want, got, again := make([]byte, size*n), make([]byte, size*n), make([]byte, size*n)
			c.some(want, rows, n, 0, n)
			if c.divide(got, rows, n); !bytes.Equal(got, want) {
				t.Errorf("%d values of %d bytes: planes % x, want % x", n, size, got, want)
			}
			if c.join(again, got, n); !bytes.Equal(again, rows) {
				t.Errorf("%d values of %d bytes: rows % x, want % x", n, size, again, rows)
			}
			short := slices.Clip(make([]byte, max(0, size*n-1)))
			for name, do := range map[string]func(){
				"divide into too few planes": func() { c.divide(short, rows, n) },
				"divide too few rows":        func() { c.divide(got, short, n) },
				"join into too few rows":     func() { c.join(short, got, n) },
				"join too few planes":        func() { c.join(again, short, n) },
			} {
				if n > 0 && !panics(do) {
					t.Errorf("%d values of %d bytes: %s: no panic", n, size, name)
				}
			}
		}
	}
}

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}
