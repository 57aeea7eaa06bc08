// Package natsserver runs the embedded NATS server of a run.
package natsserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
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
	"jacobi/internal/base/ballast"
)

const (
	// MaxPayload is the maximum size of a message, in bytes: the largest that NATS recommends.
	MaxPayload = 8 << 20
	// maxPending is the number of bytes that may wait for one client before the server drops it. Producers are not
	// stalled, so it must hold the frames of the deepest halos that two neighbours have in flight.
	maxPending = 512 << 20

	user         = "jacobi"
	loopback     = "127.0.0.1"
	startTimeout = 10 * time.Second
	leavePoll    = 5 * time.Millisecond // the server reports no event when a client leaves
)

// Options are the arguments of Start.
type Options struct {
	// RunID limits clients to the subjects of this run; "" sets no limit, for tests.
	RunID string
	// Hosts are the names and addresses of this machine by which ranks on other machines reach it. Without any, the
	// server listens on 127.0.0.1. Otherwise it listens on all interfaces, with TLS and a certificate made for this
	// server alone.
	Hosts []string
	Port  int         // 0: any free port
	Log   *zap.Logger // receives the server's errors
}

// Server is a running NATS server. It admits one user, with a password made for this server alone.
type Server struct {
	srv       *server.Server
	password  string
	authority []byte // the certificate that clients trust, in PEM; nil without TLS
	ballast   []byte // all messages pass through the heap
	close     sync.Once
}

// Start starts a server. When it returns, the server accepts connections.
func Start(o Options) (*Server, error) {
	s := &Server{password: rand.Text(), ballast: ballast.New()}
	opts := &server.Options{
		ServerName: "jacobi",
		Host:       loopback,
		Port:       server.RANDOM_PORT,
		Users:      []*server.User{{Username: user, Password: s.password, Permissions: permissions(o.RunID)}},
		MaxPayload: MaxPayload,
		MaxPending: maxPending,
		// Ranks on a busy machine may be slow to authenticate.
		AuthTimeout: startTimeout.Seconds(),
		TLSTimeout:  startTimeout.Seconds(),
		// A stall would cost every rank 2 to 5 ms, and the bytes that a rank sends ahead are bounded anyway.
		NoFastProducerStall: true,
		// The launcher handles signals. Its ranks have ended when it closes the server.
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

// serve sets opts for a server that other machines reach at hosts.
func (s *Server) serve(opts *server.Options, hosts []string) error {
	opts.Host = "0.0.0.0"
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil && ip.To4() == nil {
			opts.Host = "::" // all interfaces, IPv4 and IPv6
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

// NATS returns the configuration with which ranks on this machine reach the server. It is secret and must not appear in
// logs or command lines.
func (s *Server) NATS() configs.NATS { return s.At(loopback) }

// At returns the configuration with which ranks reach the server at hosts, some of Options.Hosts; they try all of them.
// It is secret and must not appear in logs or command lines.
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

// Close shuts the server down and waits until it has ended. It may be called more than once.
func (s *Server) Close() {
	s.close.Do(func() {
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
	})
}

// logger passes the server's errors to zap and drops messages that do not matter to a run.
type logger struct {
	log *zap.Logger

	mu   sync.Mutex
	last string
	seen map[string]bool // kinds of errors that clients have caused
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

// Warnf logs warnings, such as of slow consumers, for debugging only. It drops the one about plaintext passwords: the
// password never leaves the run.
func (l *logger) Warnf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); !strings.HasPrefix(text, "Plaintext passwords") {
		l.log.Debug("NATS server: " + text)
	}
}

func (l *logger) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	again := l.remember(text)
	// A killed rank resets its connection; the launcher reports the rank.
	if again || strings.Contains(text, "read: connection reset by peer") {
		l.log.Debug("NATS server: " + text)
		return
	}
	l.log.Error("NATS server: " + text)
}

// client matches the beginning of a message about a client.
var client = regexp.MustCompile(`^\S+ - cid:\d+ - `)

// kind returns the kind of error that text reports, without the parts that a client can choose.
func kind(text string) string {
	prefix := client.FindString(text)
	if prefix == "" {
		return text
	}
	text, _, _ = strings.Cut(text[len(prefix):], " - ")
	text, _, _ = strings.Cut(text, ":")
	return text
}

// Fatalf keeps the reason why the server cannot start; Start returns it as an error.
func (l *logger) Fatalf(format string, v ...any) { _ = l.remember(fmt.Sprintf(format, v...)) }

// remember keeps text as the last error, and reports whether a client has caused an error of the same kind before. A
// client that tries many passwords is so logged once.
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

// reason returns why the server did not start.
func (l *logger) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return fmt.Errorf("takes no connections after %v", startTimeout)
	}
	return errors.New(l.last)
}

// Addresses returns the addresses of this machine that other machines may reach.
func Addresses() ([]string, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []string
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			own = append(own, n.IP.String())
		}
	}
	return own, nil
}

const (
	// clockSkew is how far another node's clock may be behind.
	clockSkew = 24 * time.Hour
	// certificateLife is longer than any run: a rank that reconnects verifies the certificate again.
	certificateLife = 10 * 365 * 24 * time.Hour
)

// newCertificate makes a self-signed certificate for a server at the given names and addresses. Clients trust pemCert
// and no other certificate. The key never leaves this process.
func newCertificate(hosts []string, now time.Time) (cert tls.Certificate, pemCert []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return cert, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "jacobi"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return cert, nil, err
	}
	cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
