package method

import (
	"testing"

	"jacobi/solver"
)

// Over peer memory Depth rows travel each way in an exchange.
func TestPeerTrafficOfSweeps(t *testing.T) {
	s := Sweeps{o: Options{Layout: solver.Layout{Mesh: solver.Mesh{NX: 100, DType: solver.Float32}, Depth: 16}}}
	if got, want := s.PeerTraffic(3, 2), (Traffic{Exchanges: 3, Sent: 19200, Received: 12800}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
