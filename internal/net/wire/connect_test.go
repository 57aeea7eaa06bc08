package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/base/proctest"
	"jacobi/internal/net/roster/rostertest"
)

func connect(t *testing.T, o Options) error {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	o.Logger = zaptest.NewLogger(t)
	conn, err := Connect(t.Context(), o)
	if err == nil {
		conn.Close()
	}
	return err
}

// freeAddr returns an address on which no process listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", proctest.Port(t))
}

func TestConnectRefused(t *testing.T) {
	guarded := rostertest.StartWith(t, server.Options{Username: "jacobi", Password: "right"})
	addr := strings.TrimPrefix(guarded.URL(), "nats://")
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	dead := freeAddr(t)
	for name, c := range map[string]struct {
		o    Options
		want []string
	}{
		"nobody there": {Options{Server: configs.NATS{URL: "nats://u:hunter2@" + dead},
			Timeout: 300 * time.Millisecond}, []string{"nats://" + dead, "connection refused"}},
		"wrong password": {Options{Server: configs.NATS{URL: "nats://jacobi:hunter2@" + addr}},
			[]string{addr, "Authorization Violation"}},
		"no password": {Options{Server: configs.NATS{URL: addr}}, []string{addr, "Authorization Violation"}},
		"mute server": {Options{Server: configs.NATS{URL: "hunter2@" + mute.Addr().String()},
			Timeout: 300 * time.Millisecond}, []string{mute.Addr().String(), "no answer in time"}},
		"no URL": {Options{}, []string{"the URL is empty"}},
		"bad URL": {Options{Server: configs.NATS{URL: "nats://u:hunter2%zz@h:1"}},
			[]string{"the URL does not parse"}},
		"no creds file": {Options{Server: configs.NATS{URL: addr, Creds: "/nowhere/x.creds"}},
			[]string{"/nowhere/x.creds"}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := connect(t, c.o)
			if err == nil {
				t.Fatal("connected")
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %q shows the secret", err)
			}
		})
	}
	if err := connect(t, Options{Server: configs.NATS{URL: "nats://jacobi:right@" + addr}}); err != nil {
		t.Errorf("right password: %v", err)
	}
}

func TestConnectEndsWithContext(t *testing.T) {
	cause := errors.New("the user is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := Connect(ctx, Options{Server: configs.NATS{URL: freeAddr(t)}, Timeout: time.Minute}); !errors.Is(err,
		cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

func TestConnectWaitsForServer(t *testing.T) {
	s := rostertest.Start(t, 0)
	url := s.URL()
	s.Stop()
	done := make(chan error)
	go func() {
		conn, err := Connect(t.Context(), Options{Server: configs.NATS{URL: url}, Timeout: 10 * time.Second})
		if err == nil {
			conn.Close()
		}
		done <- err
	}()
	s.Run()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestQuiet checks that only one of the connections of a process logs that the server was lost and came back.
func TestQuiet(t *testing.T) {
	s := rostertest.Start(t, 0)
	open := func(quiet bool) (*Conn, *observer.ObservedLogs) {
		core, logs := observer.New(zap.InfoLevel)
		conn, err := Connect(t.Context(), Options{Server: configs.NATS{URL: s.URL()}, Timeout: 5 * time.Second,
			Logger: zap.New(core), Quiet: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn, logs
	}
	quiet, none := open(true)
	back := quiet.Raw().StatusChanged(nats.CONNECTED)
	_, said := open(false)
	s.Restart()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case <-back:
	case <-ctx.Done():
		t.Fatal("the quiet connection does not come back")
	}
	for said.FilterMessage("reconnected to the NATS server").Len() == 0 {
		if ctx.Err() != nil {
			t.Fatalf("the other connection says %v", said.All())
		}
		runtime.Gosched()
	}
	if none.Len() > 0 {
		t.Errorf("the quiet connection says %v", none.All())
	}
}
