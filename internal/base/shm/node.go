package shm

import (
	"fmt"
	"os"
	"strings"
)

// Node identifies where a process can share memory. Processes with equal Nodes can try to open each other's segments;
// only Open tells whether that works.
type Node struct {
	Boot string `json:"boot"` // the running kernel's boot id
	// number of the PID namespace; process numbers mean the same within it
	PIDNamespace string `json:"pid_namespace"`
	User         int    `json:"user"` // effective user id; other users cannot read /proc/PID/fd
}

// LocalNode returns the Node of this process.
func LocalNode() (Node, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Node{}, fmt.Errorf("shm: identify the node: %w", err)
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Node{}, fmt.Errorf("shm: identify the PID namespace: %w", err)
	}
	ns = strings.TrimSuffix(strings.TrimPrefix(ns, "pid:["), "]")
	return Node{Boot: strings.TrimSpace(string(boot)), PIDNamespace: ns, User: os.Geteuid()}, nil
}

// String returns the Node in words, for messages.
func (n Node) String() string {
	return fmt.Sprintf("boot id %s, PID namespace %s, user %d", n.Boot, n.PIDNamespace, n.User)
}
