package natsserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.Log = zaptest.NewLogger(t)
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, n configs.NATS) *nats.Conn {
	t.Helper()
	opts := []nats.Option{nats.NoReconnect()}
	if n.CA != "" {
		opts = append(opts, nats.Secure(&tls.Config{RootCAs: pool(t, n)}))
	}
	c, err := nats.Connect(n.URL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func pool(t *testing.T, n configs.NATS) *x509.CertPool {
	t.Helper()
	authority, err := configs.Contents(n.CA)
	p := x509.NewCertPool()
	if err != nil || !p.AppendCertsFromPEM(authority) {
		t.Fatalf("no authority in %q: %v", n.CA, err)
	}
	return p
}

func TestServerCarriesTheLargestPayload(t *testing.T) {
	s := start(t, Options{})
	from, to := connect(t, s.NATS()), connect(t, s.NATS())
	if got := from.MaxPayload(); got != MaxPayload {
		t.Errorf("max payload %d, want %d", got, MaxPayload)
	}
	sub, err := to.SubscribeSync("rows")
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Flush(); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), MaxPayload/16)
	if err := from.Publish("rows", want); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Data, want) {
		t.Errorf("%d bytes arrived changed", len(m.Data))
	}
}

func addr(s *Server) string { return s.srv.Addr().String() }

func TestServerIsOnLoopbackAndAdmitsOnlyTheRun(t *testing.T) {
	s, other := start(t, Options{}), start(t, Options{})
	host, _, err := net.SplitHostPort(addr(s))
	if err != nil || host != "127.0.0.1" {
		t.Errorf("address %q, want one on 127.0.0.1", addr(s))
	}
	refuses(t, s, other)
}

// refuses checks that s admits no client without a password, nor with the password of another run.
func refuses(t *testing.T, s, other *Server, opts ...nats.Option) {
	t.Helper()
	own := s.NATS().URL
	for name, url := range map[string]string{
		"no password":             strings.Replace(own, user+":"+s.password+"@", "", 1),
		"password of another run": strings.Replace(own, s.password, other.password, 1),
	} {
		if url == own {
			t.Fatalf("%s: nothing was changed", name)
		}
		c, err := nats.Connect(url, opts...)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: error %v, want %v", name, err, nats.ErrAuthorization)
		}
		if err == nil {
			c.Close()
		}
	}
}

// For ranks on other hosts the server has TLS, with a certificate of its own.
func TestServerForOtherHosts(t *testing.T) {
	s, other := start(t, Options{Hosts: []string{"node-a", "::1"}}), start(t, Options{Hosts: []string{"127.0.0.1"}})
	if host, _, err := net.SplitHostPort(addr(s)); err != nil || host != "::" {
		t.Errorf("address %q, want one on all interfaces", addr(s))
	}
	for _, n := range []configs.NATS{s.NATS(), s.At("::1")} {
		if c := connect(t, n); c.ConnectedUrl() != n.URL || !strings.HasPrefix(n.URL, "tls://") {
			t.Errorf("connected to %s by %s", c.ConnectedUrlRedacted(), n.URL)
		}
	}
	if n := s.At("node-a"); !strings.Contains(n.URL, "@node-a:") {
		t.Errorf("at node-a: %#v", n)
	}
	trusting := nats.Secure(&tls.Config{RootCAs: pool(t, s.NATS())})
	refuses(t, s, other, trusting)
	if _, err := nats.Connect(other.NATS().URL, trusting); !isUnknownAuthority(err) {
		t.Errorf("server of another run: error %v", err)
	}
	plain, err := net.DialTimeout("tcp", strings.Replace(addr(s), "[::]", "127.0.0.1", 1), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := fmt.Fprintf(plain, "CONNECT {\"user\":%q,\"pass\":%q}\r\nPING\r\n", user, s.password); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(plain); strings.Contains(string(answer), "PONG") {
		t.Errorf("served without TLS: %q", answer)
	}
}

func isUnknownAuthority(err error) bool {
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

// The credentials of a run permit its own subjects and no others.
func TestSubjectsOfTheRunAlone(t *testing.T) {
	s := start(t, Options{RunID: "mine"})
	denied := make(chan error, 10)
	c, err := nats.Connect(s.NATS().URL, nats.ErrorHandler(
		func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	sub, err := c.SubscribeSync("jacobi.mine.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Publish("jacobi.mine.halo.1.top", []byte("rows")); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(10 * time.Second); err != nil || string(m.Data) != "rows" {
		t.Errorf("got %v, %v", m, err)
	}
	for _, subject := range []string{">", "jacobi.>", "jacobi.theirs.>", "_INBOX.>", "$SYS.>"} {
		if _, err := c.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantDenied(t, denied, fmt.Sprintf("Subscription to %q", subject))
	}
	for _, subject := range []string{"jacobi.theirs.abort", "x"} {
		if err := c.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantDenied(t, denied, fmt.Sprintf("Publish to %q", subject))
	}
}

func wantDenied(t *testing.T, denied <-chan error, want string) {
	t.Helper()
	select {
	case err := <-denied:
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s was not refused", want)
	}
}

// A client that tries many passwords is logged once.
func TestStrangersAreReportedOnce(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	s, err := Start(Options{Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if c, err := nats.Connect(fmt.Sprintf("nats://user%d:%d@%s", i, i, addr(s))); err == nil {
			c.Close()
			t.Error("admitted")
		}
	}
	s.Close() // everything has been logged then
	if all := logs.All(); len(all) != 1 || !strings.Contains(all[0].Message, "authentication error") {
		t.Errorf("log: %v", all)
	}
}

func TestCloseWaits(t *testing.T) {
	s := start(t, Options{})
	addr := addr(s)
	connect(t, s.NATS())
	s.Close()
	s.Close()
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Errorf("%s still answers after Close", addr)
	}
}
