package halo_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
)

// TestConnectLeavesNothing checks by this process's open files that segments are closed with the links.
func TestConnectLeavesNothing(t *testing.T) {
	s := serve(t, server.Options{})
	w := newWorld(t, s, ModeP2P, 3, true)
	before := segments(t)
	links, errs := w.connect(t)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got, want := segments(t), before+3; got != want {
		t.Errorf("%d segments with 3 links, want %d", got, want)
	}
	for _, l := range links {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := segments(t); got != before {
		t.Errorf("%d segments after Close, want %d", got, before)
	}
}

func segments(t *testing.T) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if target, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil &&
			strings.HasPrefix(target, "/memfd:jacobi") {
			n++
		}
	}
	return n
}

// Shared memory goes by what the caller has decided, in its words.
func TestReachable(t *testing.T) {
	for _, c := range []struct {
		theirs Member
		why    string
	}{
		{Member{"two", true, "same node (7)"}, "same node (7), segment mapped"},
		{Member{"two", false, "same node, but users 1 and 2"}, "same node, but users 1 and 2"},
	} {
		if ok, why := (SharedMemory{}).Reachable(c.theirs); ok != c.theirs.SharesMemory || why != c.why {
			t.Errorf("%+v: %v, %s; want %v, %s", c.theirs, ok, why, c.theirs.SharesMemory, c.why)
		}
	}
}
