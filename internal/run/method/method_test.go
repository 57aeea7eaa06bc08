package method

import (
	"bytes"
	"testing"

	"jacobi/solver"
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

// Over peer memory Depth rows travel each way in an exchange.
func TestPeerTrafficOfSweeps(t *testing.T) {
	s := Sweeps{o: Options{Layout: solver.Layout{Mesh: solver.Mesh{NX: 100, DType: solver.Float32}, Depth: 16}}}
	if got, want := s.PeerTraffic(3, 2), (Traffic{Exchanges: 3, Sent: 19200, Received: 12800}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
