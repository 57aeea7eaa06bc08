package tasks

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"jacobi/internal/net/roster"
	"jacobi/internal/run/rank"
)

// A rank that the launcher stopped, or another rank told to end, has no fault of its own.
func TestFaultsThatFollow(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  bool
	}{
		{fmt.Errorf("join: %w", &rank.StopError{Signal: syscall.SIGTERM}), true},
		{fmt.Errorf("join: %w", &roster.AbortError{Rank: 1, Cause: "disk full"}), true},
		{errors.New("disk full"), false},
	} {
		if got := follows(c.cause); got != c.want {
			t.Errorf("%v: %t, want %t", c.cause, got, c.want)
		}
	}
}
