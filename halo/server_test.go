package halo_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

// testServer is a NATS server whose connections end with the test that asked for them.
type testServer struct{ *rostertest.Server }

func serve(t testing.TB, o server.Options) testServer {
	t.Helper()
	return testServer{rostertest.StartWith(t, o)}
}

func (s testServer) connect(t testing.TB) *wire.Conn { return wire.Over(s.dial(t)) }

func (s testServer) dial(t testing.TB) *nats.Conn {
	t.Helper()
	nc := s.Dial()
	t.Cleanup(nc.Close)
	return nc
}
