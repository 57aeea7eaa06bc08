package rank

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/net/roster"
)

// The cause of the comm's end is reported, and not the error that it led to.
func TestBlame(t *testing.T) {
	followed := errors.New("wait for halo rows: context canceled")
	for _, test := range []struct {
		cause, want error
	}{
		{nil, followed},
		{errors.New("no more"), followed},
		{&roster.AbortError{Rank: 2, Cause: "out of memory"}, nil},
		{&roster.SilentError{Rank: 1, Host: "b"}, nil},
		{&roster.ServerError{Server: "nats://a:4222"}, nil},
		{&StopError{syscall.SIGINT}, nil},
	} {
		want := test.want
		if want == nil {
			want = test.cause
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		j := joinAlone(ctx, t, nil)
		if test.cause != nil {
			cancel(test.cause)
		}
		if got := j.blame(followed); got != want {
			t.Errorf("the comm ends with %v: %v is blamed, want %v", test.cause, got, want)
		}
		if got, want := j.fail(followed).Error(), "rank 0: "+want.Error(); got != want {
			t.Errorf("the comm ends with %v: reported is %q, want %q", test.cause, got, want)
		}
		cancel(nil)
	}
}

// A wait that was too long names the key of its deadline, unless another rank said why it ended.
func TestTimeoutsNameTheirKey(t *testing.T) {
	var o Options
	o.Config.Halo.Timeout = 5 * time.Millisecond
	late := &roster.TimeoutError{Op: "gather", Ranks: []int{1}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("join: %w", late), "join: gather: timed out waiting for rank 1 (halo.timeout 5ms)"},
		{context.DeadlineExceeded, "context deadline exceeded (halo.timeout 5ms)"},
		{errors.New("disk full"), "disk full"},
		{&roster.AbortError{Rank: -1, Cause: "it is over"}, "run aborted by the launcher: it is over"},
	} {
		if got := o.namingTimeout(c.err); got.Error() != c.want || !errors.Is(got, c.err) && !errors.Is(got, late) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A known fault of the connection explains a wait that timed out, which is then this rank's own failure. It explains no
// other error.
func TestWithFault(t *testing.T) {
	timeout := &roster.TimeoutError{Op: "gather", Ranks: []int{1}}
	abort := &roster.AbortError{Rank: 2, Cause: "out of memory"}
	own := errors.New("disk full")
	refused := errors.New("permissions violation")
	for _, test := range []struct {
		err, fault  error
		want        string
		consequence bool
	}{
		{timeout, refused, "gather: timed out waiting for rank 1; permissions violation", false},
		{timeout, nil, timeout.Error(), true},
		{abort, refused, abort.Error(), true},
		{fmt.Errorf("sweep 7: %w", abort), refused, "sweep 7: " + abort.Error(), true},
		{own, refused, own.Error(), false},
	} {
		c := &session{connection: connection{fault: func() error { return test.fault }}}
		got := c.withFault(test.err)
		if got.Error() != test.want {
			t.Errorf("%v with fault %v: %q, want %q", test.err, test.fault, got, test.want)
		}
		if c := roster.IsConsequence(got); c != test.consequence {
			t.Errorf("%v with fault %v: a consequence: %t, want %t", test.err, test.fault, c, test.consequence)
		}
	}
	if got := (&session{}).withFault(timeout); got != timeout {
		t.Errorf("without a connection: %v, want %v", got, timeout)
	}
}
