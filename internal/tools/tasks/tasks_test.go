package tasks

import (
	"errors"
	"fmt"
	"reflect"
	"syscall"
	"testing"

	"jacobi/internal/base/shm"
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

// The nodes are in the order of their lowest ranks. A rank whose node is not known is one of its own.
func TestNodesOf(t *testing.T) {
	var members []roster.Member
	for rank, boot := range []string{"a", "b", "a", "", "b", ""} {
		m := roster.Member{Identity: roster.Identity{Rank: rank}, Host: "host", Node: shm.Node{Boot: boot}}
		members = append(members, m)
	}
	if got, want := nodesOf(members), [][]int{{0, 2}, {1, 4}, {3}, {5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
