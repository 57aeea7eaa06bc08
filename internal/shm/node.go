package shm

import (
	"fmt"
	"os"
	"strings"
)

// Node is where a process can share memory: processes with equal Nodes can try to open each other's
// segments. Whether it works, only Open tells.
type Node struct {
	Boot string `json:"boot"` // the running kernel's boot id
	// the number of the PID namespace, in which process numbers mean the same
	PIDNamespace string `json:"pid_namespace"`
	User         int    `json:"user"` // effective user id: /proc/PID/fd is closed to others
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

// String returns the Node for messages.
func (n Node) String() string {
	return fmt.Sprintf("boot id %s, PID namespace %s, user %d", n.Boot, n.PIDNamespace, n.User)
}
