package npy

import (
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	const dict = `{'descr': '<f4', "fortran_order": True, 'shape': (5,4), }`
	got, err := ReadHeader(strings.NewReader("\x93NUMPY\x01\x00\x3a\x00" + dict + "\n"))
	if want := (Header{"<f4", true, "(5, 4)", 68}); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("\x93NUMPY\x01\x00\x3a\x00{'descr': '<f4', 'fortran_order': False, 'shape': (5, 4), }\n"))
	f.Add([]byte("\x93NUMPY\x03\x00\x38\x00\x00\x00{'descr': '<f8', 'fortran_order': True, 'shape': (5,), }\n"))
	f.Add([]byte("\x93NUMPY\x01\x00\x10\x00{'descr': [('a', '<f4')], "))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(strings.NewReader(string(b)))
		if err == nil && (h.Size < 10 || h.Size > int64(len(b))) {
			t.Errorf("header of %d bytes in %d", h.Size, len(b))
		}
	})
}
