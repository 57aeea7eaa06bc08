// Package rostertest helps to test the communication of ranks over NATS: with a server in the process that can be
// restarted, and with connections that lose, duplicate and reorder messages.
package rostertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/internal/base/proctest"
)

// Server is an embedded NATS server on loopback.
type Server struct {
	t    testing.TB
	opts server.Options
	srv  *server.Server
}

// Start starts a server that accepts messages of up to maxPayload bytes; 0 stands for NATS's default. The server ends
// with the test.
func Start(t testing.TB, maxPayload int32) *Server {
	t.Helper()
	return StartWith(t, server.Options{MaxPayload: maxPayload, NoSystemAccount: true})
}

// StartWith starts a server with the given options.
func StartWith(t testing.TB, opts server.Options) *Server {
	t.Helper()
	opts.Host, opts.NoLog, opts.NoSigs = "127.0.0.1", true, true
	opts.Port = proctest.Port(t)
	s := &Server{t: t, opts: opts}
	s.Run()
	t.Cleanup(s.Stop)
	return s
}

// Run starts the server again after Stop, on the same port.
func (s *Server) Run() {
	s.t.Helper()
	opts := s.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatal(err)
	}
	log := &faults{}
	srv.SetLogger(log, false, false)
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		s.t.Fatalf("the NATS server does not start: %q", log.text())
	}
	s.srv, s.opts.Port = srv, opts.Port
}

// Stop ends the server. Messages on their way are lost.
func (s *Server) Stop() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

// RunChanged is Run with changed options.
func (s *Server) RunChanged(change func(*server.Options)) {
	s.t.Helper()
	change(&s.opts)
	s.Run()
}

// Restart calls Stop and Run.
func (s *Server) Restart() {
	s.Stop()
	s.Run()
}

// URL returns the server's address.
func (s *Server) URL() string { return s.srv.ClientURL() }

// Route returns the address at which other servers join this server's cluster. StartWith must have been given the
// cluster's options.
func (s *Server) Route() string { return "nats-route://" + s.srv.ClusterAddr().String() }

// Dial connects to the server; the connection reconnects quickly and ends with the test.
func (s *Server) Dial() *nats.Conn {
	s.t.Helper()
	c, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond),
		nats.ReconnectJitter(0, 0))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// faults is a server's log that keeps errors.
type faults struct {
	mu    sync.Mutex
	lines []string
}

func (f *faults) text() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

// Errorf and Fatalf keep a line. The server leaves it to Fatalf to end the process.
func (f *faults) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}
func (f *faults) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

func (*faults) Noticef(string, ...any) {}
func (*faults) Warnf(string, ...any)   {}
func (*faults) Debugf(string, ...any)  {}
func (*faults) Tracef(string, ...any)  {}
