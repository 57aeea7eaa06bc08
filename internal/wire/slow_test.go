package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
)

// A server that is slow to answer is asked again, one that refuses is not.
func TestTemporary(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
		{nats.ErrTimeout, true},
		{nats.ErrAuthorization, false},
		{errors.New("tls: first record does not look like a TLS handshake"), false},
	} {
		if got := temporary(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}
