// Package natsserver runs the NATS server that a launcher gives to its own run.
package natsserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

const (
	// MaxPayload is the largest message that the server takes: the most that NATS advises.
	MaxPayload = 8 << 20
	// maxPending is what may wait for one client before the server drops it. Producers are not stalled,
	// so it must hold the frames of the deepest halos that two neighbours have in flight.
	maxPending = 512 << 20

	user         = "jacobi"
	startTimeout = 10 * time.Second
)

// Server is a running NATS server on the loopback interface. It admits one user, whose password is made
// for this server alone.
type Server struct {
	srv      *server.Server
	password string
	close    sync.Once
}

// Start starts a server on a free port of 127.0.0.1. It returns once the server takes connections. Only
// the server's errors go to log.
func Start(log *zap.Logger) (*Server, error) {
	s := &Server{password: rand.Text()}
	opts := &server.Options{
		ServerName: "jacobi",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		Username:   user,
		Password:   s.password,
		MaxPayload: MaxPayload,
		MaxPending: maxPending,
		// A stall costs every rank 2 to 5 ms; what a rank may send ahead is bounded anyway.
		NoFastProducerStall: true,
		// The launcher handles signals, and its ranks have ended when it closes the server.
		NoSigs:                true,
		LameDuckGracePeriod:   time.Millisecond,
		LameDuckDuration:      time.Second,
		DisableShortFirstPing: true,
		NoSystemAccount:       true,
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	s.srv = srv
	l := &logger{log: log}
	srv.SetLoggerV2(l, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		s.Close()
		return nil, fmt.Errorf("embedded NATS server on %s: %w", opts.Host, l.reason())
	}
	return s, nil
}

// Addr returns host and port, which are no secret.
func (s *Server) Addr() string { return s.srv.Addr().String() }

// URL returns the address with user and password: a secret, not for logs or command lines.
func (s *Server) URL() string {
	port := s.srv.Addr().(*net.TCPAddr).Port
	u := url.URL{
		Scheme: "nats",
		User:   url.UserPassword(user, s.password),
		Host:   net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
	return u.String()
}

// Close ends the server and waits until it has. It may be called again.
func (s *Server) Close() {
	s.close.Do(func() {
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
	})
}

// logger hands the server's errors to zap and drops what is of no interest to a run.
type logger struct {
	log *zap.Logger

	mu   sync.Mutex
	last string
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

// Warnf keeps slow consumers for those who ask. That the password is no hash is as it should be: it never leaves
// the run.
func (l *logger) Warnf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); !strings.HasPrefix(text, "Plaintext passwords") {
		l.log.Debug("NATS server: " + text)
	}
}

func (l *logger) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.remember(text)
	// A rank that was killed leaves its connection without a word; the launcher reports the rank.
	if strings.Contains(text, "read: connection reset by peer") {
		l.log.Debug("NATS server: " + text)
		return
	}
	l.log.Error("NATS server: " + text)
}

// Fatalf reports why the server cannot start; Start returns it as an error.
func (l *logger) Fatalf(format string, v ...any) { l.remember(fmt.Sprintf(format, v...)) }

func (l *logger) remember(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = text
}

// reason says why the server did not start.
func (l *logger) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return fmt.Errorf("takes no connections after %v", startTimeout)
	}
	return errors.New(l.last)
}
