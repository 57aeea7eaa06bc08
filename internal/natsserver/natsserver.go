// Package natsserver runs the NATS server that a launcher gives to its own run.
package natsserver

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"jacobi/configs"
)

const (
	// MaxPayload is the largest message that the server takes: the most that NATS advises.
	MaxPayload = 8 << 20
	// maxPending is what may wait for one client before the server drops it. Producers are not stalled,
	// so it must hold the frames of the deepest halos that two neighbours have in flight.
	maxPending = 512 << 20

	user         = "jacobi"
	loopback     = "127.0.0.1"
	startTimeout = 10 * time.Second
	leavePoll    = 5 * time.Millisecond // the server tells nobody when a client leaves
)

// Options say whom a server is for.
type Options struct {
	// RunID limits clients to the subjects of this run; "": to none, for tests.
	RunID string
	// Hosts are names and addresses of this machine by which ranks on others reach it. Without any the server listens
	// on 127.0.0.1; with some, on all interfaces and with TLS, under a certificate made for this server alone.
	Hosts []string
	Port  int         // 0: any that is free
	Log   *zap.Logger // gets the server's errors
}

// Server is a running NATS server. It admits one user, whose password is made for this server alone.
type Server struct {
	srv       *server.Server
	password  string
	authority []byte // certificate to trust, in PEM; nil without TLS
	close     sync.Once
}

// Start starts a server. It returns once the server takes connections.
func Start(o Options) (*Server, error) {
	s := &Server{password: rand.Text()}
	opts := &server.Options{
		ServerName: "jacobi",
		Host:       loopback,
		Port:       server.RANDOM_PORT,
		Users:      []*server.User{{Username: user, Password: s.password, Permissions: permissions(o.RunID)}},
		MaxPayload: MaxPayload,
		MaxPending: maxPending,
		// A machine that is busy with other ranks may be slow to say who it is.
		AuthTimeout: startTimeout.Seconds(),
		TLSTimeout:  startTimeout.Seconds(),
		// A stall costs every rank 2 to 5 ms; what a rank may send ahead is bounded anyway.
		NoFastProducerStall: true,
		// The launcher handles signals, and its ranks have ended when it closes the server.
		NoSigs:                true,
		LameDuckGracePeriod:   time.Millisecond,
		LameDuckDuration:      time.Second,
		DisableShortFirstPing: true,
		NoSystemAccount:       true,
	}
	if len(o.Hosts) > 0 {
		if err := s.serve(opts, o.Hosts); err != nil {
			return nil, fmt.Errorf("embedded NATS server: certificate: %w", err)
		}
	}
	if o.Port > 0 {
		opts.Port = o.Port
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	s.srv = srv
	l := &logger{log: o.Log}
	srv.SetLoggerV2(l, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		s.Close()
		if o.Port > 0 {
			return nil, fmt.Errorf("nats.port %d: embedded NATS server on %s: %w", o.Port, opts.Host, l.reason())
		}
		return nil, fmt.Errorf("embedded NATS server on %s: %w", opts.Host, l.reason())
	}
	return s, nil
}

// permissions limits a user to the subjects of a run.
func permissions(runID string) *server.Permissions {
	if runID == "" {
		return nil
	}
	own := &server.SubjectPermission{Allow: []string{"jacobi." + runID + ".>"}}
	return &server.Permissions{Publish: own, Subscribe: own}
}

// serve makes opts those of a server that other machines reach at hosts.
func (s *Server) serve(opts *server.Options, hosts []string) error {
	opts.Host = "0.0.0.0"
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil && ip.To4() == nil {
			opts.Host = "::" // all of both families
		}
	}
	cert, authority, err := newCertificate(append([]string{loopback}, hosts...), time.Now())
	if err != nil {
		return err
	}
	s.authority = authority
	opts.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	return nil
}

// Addr returns host and port, which are no secret.
func (s *Server) Addr() string { return s.srv.Addr().String() }

// NATS returns how ranks on this machine reach the server: a secret, not for logs or command lines.
func (s *Server) NATS() configs.NATS { return s.At(loopback) }

// At returns how ranks reach the server at some of Options.Hosts, of which they try all: a secret, not for logs or
// command lines.
func (s *Server) At(hosts ...string) configs.NATS {
	port := s.srv.Addr().(*net.TCPAddr).Port
	n, scheme := configs.NATS{}, "nats"
	if s.authority != nil {
		scheme = "tls"
		n.CA = configs.Inline(string(s.authority))
	}
	urls := make([]string, len(hosts))
	for i, host := range hosts {
		u := url.URL{Scheme: scheme, User: url.UserPassword(user, s.password),
			Host: net.JoinHostPort(host, strconv.Itoa(port))}
		urls[i] = u.String()
	}
	n.URL = strings.Join(urls, ",")
	return n
}

// AwaitLeave waits, at most for limit, until all clients have left.
func (s *Server) AwaitLeave(limit time.Duration) {
	for end := time.Now().Add(limit); s.srv.NumClients() > 0 && time.Now().Before(end); {
		time.Sleep(leavePoll)
	}
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
	seen map[string]bool // kinds of errors that clients caused
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
	again := l.remember(text)
	// A rank that was killed leaves its connection without a word; the launcher reports the rank.
	if again || strings.Contains(text, "read: connection reset by peer") {
		l.log.Debug("NATS server: " + text)
		return
	}
	l.log.Error("NATS server: " + text)
}

// client begins what the server says of one of its clients.
var client = regexp.MustCompile(`^\S+ - cid:\d+ - `)

// kind returns what kind of error text is, without what a stranger can choose.
func kind(text string) string {
	prefix := client.FindString(text)
	if prefix == "" {
		return text
	}
	text, _, _ = strings.Cut(text[len(prefix):], " - ")
	text, _, _ = strings.Cut(text, ":")
	return text
}

// Fatalf reports why the server cannot start; Start returns it as an error.
func (l *logger) Fatalf(format string, v ...any) { _ = l.remember(fmt.Sprintf(format, v...)) }

// remember keeps text as the last error, and says whether a client caused one of its kind before: whoever tries
// passwords is reported once.
func (l *logger) remember(text string) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = text
	k := kind(text)
	again = l.seen[k]
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[k] = k != text
	return again
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
