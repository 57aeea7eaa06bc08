package method

import (
	"bytes"
	"testing"
)

// Without the rows of one rank there are none, so that every rank reads them all.
func TestJoin(t *testing.T) {
	for _, c := range []struct {
		parts [][]byte
		want  []byte
	}{
		{[][]byte{{1}, {2, 3}, {4}}, []byte{1, 2, 3, 4}},
		{[][]byte{{1}, nil, {4}}, nil},
		{[][]byte{nil, {4}}, nil},
	} {
		if got := join(c.parts); !bytes.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.parts, got, c.want)
		}
	}
}
