package natsserver

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap/zaptest"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(url, nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestServerCarriesTheLargestPayload(t *testing.T) {
	s := start(t)
	from, to := connect(t, s.URL()), connect(t, s.URL())
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

func TestServerIsOnLoopbackAndAdmitsOnlyTheRun(t *testing.T) {
	s, other := start(t), start(t)
	host, _, err := net.SplitHostPort(s.Addr())
	if err != nil || host != "127.0.0.1" {
		t.Errorf("address %q, want one on 127.0.0.1", s.Addr())
	}
	strangers := map[string]string{
		"no password":             "nats://" + s.Addr(),
		"password of another run": strings.Replace(other.URL(), other.Addr(), s.Addr(), 1),
	}
	for name, url := range strangers {
		c, err := nats.Connect(url)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: error %v, want %v", name, err, nats.ErrAuthorization)
		}
		if err == nil {
			c.Close()
		}
	}
	if strings.Contains(s.Addr(), s.password) {
		t.Error("the address shows the password")
	}
}

func TestCloseWaits(t *testing.T) {
	s := start(t)
	addr := s.Addr()
	connect(t, s.URL())
	s.Close()
	s.Close()
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Errorf("%s still answers after Close", addr)
	}
}
