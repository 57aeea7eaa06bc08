package agent

import (
	"net"
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/configs"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/wire"
)

// An agent warns only if every user of a server that other machines reach may use it.
func TestOpenTo(t *testing.T) {
	others, err := natsserver.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	if len(others) == 0 {
		t.Skipf("NOT RUN: %s: this machine has no address but loopback", t.Name())
	}
	s, err := server.NewServer(&server.Options{Host: "::", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(long) {
		t.Fatal("the server does not start")
	}
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const warning = `^whoever may publish on jacobi\.nodes\.> at nats://\S+ can start ranks here, which read and ` +
		`write files as (user \S+|the user of this agent); nats\.secret_file limits that to those who have the secret$`
	for _, c := range []struct{ host, secret, want string }{
		{"127.0.0.1", "", "^$"},
		{others[0], "", warning},
		{others[0], configs.Inline("sixteen bytes of it"), "^$"},
	} {
		conn, err := wire.Connect(t.Context(), wire.Options{
			Server: configs.NATS{URL: "nats://" + net.JoinHostPort(c.host, port), SecretFile: c.secret},
			RunID:  Group, Timeout: long,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := openTo(conn); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("at %s: %q, want %s", c.host, got, c.want)
		}
		conn.Close()
	}
}
