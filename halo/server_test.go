package halo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/internal/net/wire"
)

// testServer is an embedded NATS server that keeps its port when it restarts.
type testServer struct {
	opts *server.Options
	srv  *server.Server
}

func serve(t testing.TB, o *server.Options) *testServer {
	t.Helper()
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s := &testServer{opts: o}
	s.start(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.srv.ClientURL(), "nats://"), ":")
	if _, err := fmt.Sscan(port, &o.Port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *testServer) start(t testing.TB) {
	t.Helper()
	srv, err := server.NewServer(s.opts.Clone())
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	s.srv = srv
}

func (s *testServer) stop() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

func (s *testServer) connect(t testing.TB) *wire.Conn { return wire.Over(s.dial(t)) }

// dial makes a connection for tests that break it.
func (s *testServer) dial(t testing.TB) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.srv.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond),
		nats.ReconnectJitter(time.Millisecond, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
