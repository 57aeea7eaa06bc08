package roster

import (
	"testing"

	"jacobi/internal/base/shm"
)

func TestSharing(t *testing.T) {
	node := shm.Node{Boot: "k1", PIDNamespace: "42", User: 7}
	for name, c := range map[string]struct {
		change  func(*Member)
		memory  bool
		devices bool
		why     string
	}{
		"same": {func(*Member) {}, true, true, "same node (boot id k1, PID namespace 42, user 7)"},
		"another host name": {func(m *Member) { m.Host = "two" }, true, false,
			"same node (boot id k1, PID namespace 42, user 7)"},
		"boot": {func(m *Member) { m.Node.Boot = "b" }, false, false,
			"different nodes: rank 1 on one, rank 2 on one"},
		"namespace": {func(m *Member) { m.Node.PIDNamespace = "7" }, false, false,
			"same node, but PID namespaces 42 and 7"},
		"user": {func(m *Member) { m.Node.User = -7 }, false, false, "same node, but users 7 and -7"},
		"unknown": {func(m *Member) { m.Node, m.Host = shm.Node{}, "two" }, false, false,
			"unknown node: rank 1 on one, rank 2 on two"},
	} {
		a := Member{Identity: Identity{Rank: 1}, Host: "one", Node: node}
		b := Member{Identity: Identity{Rank: 2}, Host: "one", Node: node}
		c.change(&b)
		for _, pair := range [][2]Member{{a, b}, {b, a}} {
			if ok, why := SharesMemory(pair[0], pair[1]); ok != c.memory || why != c.why {
				t.Errorf("%s: memory %v, %s; want %v, %s", name, ok, why, c.memory, c.why)
			}
			if ok := SharesDevices(pair[0], pair[1]); ok != c.devices {
				t.Errorf("%s: devices %v, want %v", name, ok, c.devices)
			}
		}
		if got := a.NodeID() == b.NodeID(); got != (a.Node == b.Node) {
			t.Errorf("%s: the same id of the node %v", name, got)
		}
	}
	unknown := Member{Host: "one"}
	ok, _ := SharesMemory(unknown, unknown)
	if ok || !SharesDevices(unknown, unknown) || unknown.NodeID() != "" {
		t.Errorf("two unknown nodes: memory %v, devices %v, id %q", ok,
			SharesDevices(unknown, unknown), unknown.NodeID())
	}
}
