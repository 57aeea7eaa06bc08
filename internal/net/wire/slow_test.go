package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
)

// A server that is slow to answer is asked again, one that refuses is not.
func TestTemporary(t *testing.T) {
	for _, c := range []struct {
		err  error
		took time.Duration
		want bool
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 0, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, 0, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, time.Second, false},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, 2 * time.Second, true},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, 10 * time.Second, true},
		{io.EOF, time.Second, false},
		{io.EOF, 10 * time.Second, true},
		{nats.ErrTimeout, 0, true},
		{nats.ErrAuthorization, 10 * time.Second, false},
		{errors.New("tls: first record does not look like a TLS handshake"), 10 * time.Second, false},
	} {
		if got := temporary(c.err, c.took); got != c.want {
			t.Errorf("%v after %v: %t, want %t", c.err, c.took, got, c.want)
		}
	}
}

// slowServer is a server whose connections break. Each of answers is what it says to the pings of a connection, before
// it closes that one. It keeps connections after those. It returns its address.
func slowServer(t *testing.T, answers ...[]string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			fmt.Fprint(c, "INFO {\"max_payload\":1000}\r\n")
			in := bufio.NewScanner(c)
			pinged := func() bool {
				for in.Scan() {
					if in.Text() == "PING" {
						return true
					}
				}
				return false
			}
			if len(answers) > 0 {
				for _, a := range answers[0] {
					pinged()
					fmt.Fprint(c, a)
				}
				answers = answers[1:]
			} else {
				for pinged() {
					fmt.Fprint(c, "PONG\r\n")
				}
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

// A server that has too much to do gives up on a rank that is slow to identify itself. The rank connects again.
func TestConnectAgainAfterAuthenticationTimeout(t *testing.T) {
	url := slowServer(t, []string{"-ERR 'Authentication Timeout'\r\n"})
	if err := connect(t, Options{Server: configs.NATS{URL: url}, Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
}

// A flush goes on when its connection breaks and is made again.
func TestFlushAfterReconnection(t *testing.T) {
	url := slowServer(t, []string{"PONG\r\n", ""})
	conn, err := Connect(t.Context(), Options{Server: configs.NATS{URL: url}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	flush(t, conn)
	conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := conn.FlushWithContext(ctx); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("closed: %v, want %v", err, nats.ErrConnectionClosed)
	}
}
