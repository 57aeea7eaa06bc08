package wire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
)

// A connection whose server comes back changed says why it cannot be made again, and is made as soon as it can be.
func TestServerComesBackDifferent(t *testing.T) {
	a := newAuthority(t)
	good, goodKey := a.issue(-time.Hour, time.Hour)
	old, oldKey := a.issue(-48*time.Hour, -24*time.Hour)
	ca := configs.Inline(a.pem())
	withPassword := server.Options{Username: "jacobi", Password: "right"}
	for name, c := range map[string]struct {
		before server.Options
		n      configs.NATS
		change func(*server.Options)
		want   string // after the address
	}{
		"away": {server.Options{}, configs.NATS{}, nil, "connect: connection refused"},
		"expired certificate": {overTLS(t, good, goodKey, nil), configs.NATS{CA: ca},
			func(o *server.Options) { o.TLSConfig = overTLS(t, old, oldKey, nil).TLSConfig },
			": renew the server's certificate, or set the clock of this machine"},
		"no TLS": {overTLS(t, good, goodKey, nil), configs.NATS{CA: ca},
			func(o *server.Options) { o.TLSConfig, o.TLSVerify = nil, false },
			"nats: secure connection not available: nats.ca or nats.cert is given, and the server has no TLS"},
		"another password": {withPassword, configs.NATS{User: "jacobi", PasswordFile: configs.Inline("right")},
			func(o *server.Options) { o.Password = "changed" },
			"nats: Authorization Violation: the server does not know this user, or wants another password or key " +
				"(nats.user and nats.password_file, nats.creds, nats.nkey, or nats.url)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rostertest.StartWith(t, c.before)
			n := c.n
			n.URL = s.URL()
			conn, err := Connect(t.Context(), Options{Server: n, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.Fault(); err != nil {
				t.Errorf("a fault before any: %v", err)
			}
			s.Stop()
			if c.change != nil {
				s.RunChanged(c.change)
			}
			prefix := "the connection to the NATS server at " + n.URL + " could not be made again: "
			await(t, conn, func(err error) bool {
				return err != nil && strings.HasPrefix(err.Error(), prefix) && strings.HasSuffix(err.Error(), c.want)
			})
			if c.change != nil {
				s.Stop()
			}
			s.RunChanged(func(o *server.Options) {
				o.TLSConfig, o.Password = c.before.TLSConfig, c.before.Password
			})
			await(t, conn, func(err error) bool { return err == nil })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := conn.FlushWithContext(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// await polls the connection's Fault until ok holds: no event announces it.
func await(t *testing.T, conn *Conn, ok func(error) bool) {
	t.Helper()
	var last error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if last = conn.Fault(); ok(last) {
			return
		}
	}
	t.Fatalf("fault: %v", last)
}

// A refusal by the server is reported once. The error names the limit or the permission to change.
func TestServerRefuses(t *testing.T) {
	own := &server.SubjectPermission{Allow: []string{"other.>"}}
	limited := server.Options{Users: []*server.User{{Username: "u", Password: "p",
		Permissions: &server.Permissions{Publish: own, Subscribe: own}}}}
	subscribe := func(c *Conn) error {
		_, err := c.Subscribe("jacobi.run.a", func(pubsub.Message) {})
		return err
	}
	twice := func(c *Conn) error { return errors.Join(subscribe(c), subscribe(c)) }
	const needs = ": the user needs permission to publish and subscribe on jacobi.>"
	for name, c := range map[string]struct {
		server server.Options
		use    func(*Conn) error
		want   string // after the address
	}{
		"publish": {limited, func(c *Conn) error { return c.Publish("jacobi.run.event", nil) },
			`nats: permissions violation: Permissions Violation for Publish to "jacobi.run.event"` + needs},
		"subscribe": {limited, subscribe,
			`nats: permissions violation: Permissions Violation for Subscription to "jacobi.run.a"` + needs},
		"subscriptions": {server.Options{MaxSubs: 1}, twice,
			"nats: server maximum subscriptions exceeded: " +
				"raise max_subscriptions in the configuration of the server, or of the account"},
	} {
		t.Run(name, func(t *testing.T) {
			s := rostertest.StartWith(t, c.server)
			n := configs.NATS{URL: s.URL()}
			if c.server.Users != nil {
				n.User, n.PasswordFile = "u", configs.Inline("p")
			}
			told := make(chan error, 10)
			o := Options{Server: n, Timeout: 5 * time.Second, Refused: func(err error) { told <- err }}
			conn, err := Connect(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := c.use(conn); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := conn.FlushWithContext(ctx); err != nil {
				t.Fatal(err)
			}
			want := "the NATS server at " + n.URL + ": " + c.want
			if err := conn.Fault(); err == nil || err.Error() != want {
				t.Errorf("fault %v\nwant %s", err, want)
			}
			if err := <-told; err.Error() != want || len(told) > 0 {
				t.Errorf("told %v, and %d times more\nwant %s", err, len(told), want)
			}
		})
	}
}

// The error for a message that is too large names the server's limit.
func TestMessageTooLarge(t *testing.T) {
	s := rostertest.Start(t, 1000)
	n := configs.NATS{URL: s.URL(), SecretFile: configs.Inline("a secret that is long enough")}
	conn, err := Connect(t.Context(), Options{Server: n, RunID: "run", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Publish("jacobi.run.x", make([]byte, 1000))
	want := "nats: maximum payload exceeded: " +
		"a message of 1028 bytes, and max_payload in the configuration of the NATS server is 1000"
	if !errors.Is(err, nats.ErrMaxPayload) || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
	if most := conn.MaxPayload(); most != 972 { // the seal takes 28
		t.Errorf("max payload %d, want 972", most)
	}
	if err := conn.Publish("jacobi.run.x", make([]byte, 972)); err != nil {
		t.Error(err)
	}
}

// An error tells whether the message may be sent again.
func TestMessageLost(t *testing.T) {
	s := rostertest.Start(t, 0)
	for _, runSecret := range []string{"", secret} {
		c, _ := join(t, s, "run", runSecret)
		s.Stop()
		var err error
		for err == nil { // the client keeps messages while it reconnects, up to a bound
			err = c.Publish("jacobi.run.x", make([]byte, 1<<19))
		}
		if !errors.Is(err, pubsub.ErrLost) { // the bound, or a write to the broken connection
			t.Errorf("sealed %v: %v, want %v", c.Sealed(), err, pubsub.ErrLost)
		}
		c.Close()
		err = c.Publish("jacobi.run.x", nil)
		if !errors.Is(err, pubsub.ErrClosed) || err.Error() != nats.ErrConnectionClosed.Error() {
			t.Errorf("sealed %v: %v, want %v", c.Sealed(), err, pubsub.ErrClosed)
		}
		if c.Status() != pubsub.Closed {
			t.Errorf("%v, want %v", c.Status(), pubsub.Closed)
		}
		s.Run()
	}
}
