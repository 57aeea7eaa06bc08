package halo

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/shm"
)

// TestConnectLeavesNothing checks by this process's open files that segments are closed with the links.
func TestConnectLeavesNothing(t *testing.T) {
	s := serve(t, &server.Options{})
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

func TestReachable(t *testing.T) {
	node, err := shm.LocalNode()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*shm.Node)
		ok     bool
		why    string
	}{
		"same": {func(*shm.Node) {}, true, "same node (" + node.String() + "), segment mapped"},
		"boot": {func(n *shm.Node) { n.Boot = "b" }, false, "different nodes: rank 1 on one, rank 2 on two"},
		"namespace": {func(n *shm.Node) { n.PIDNamespace = "7" }, false,
			"same node, but PID namespaces " + node.PIDNamespace + " and 7"},
		"user": {func(n *shm.Node) { n.User = -7 }, false,
			fmt.Sprintf("same node, but users %d and -7", node.User)},
		"unknown": {func(n *shm.Node) { *n = shm.Node{} }, false, "unknown node: rank 1 on one, rank 2 on two"},
	} {
		a, b := Member{1, "one", node}, Member{2, "two", node}
		c.change(&b.Node)
		for _, pair := range [][2]Member{{a, b}, {b, a}} {
			if ok, why := (SharedMemory{}).Reachable(pair[0], pair[1]); ok != c.ok || why != c.why {
				t.Errorf("%s: %v, %s; want %v, %s", name, ok, why, c.ok, c.why)
			}
		}
	}
	unknown := Member{Rank: 3}
	if ok, _ := (SharedMemory{}).Reachable(unknown, unknown); ok {
		t.Error("two unknown nodes are taken for one")
	}
}
