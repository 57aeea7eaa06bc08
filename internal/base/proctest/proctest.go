// Package proctest lets tests wait for the end of processes that are not their children, and gives them ports that no
// test of another process has.
package proctest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a process that is running or has ended. It never refers to another process that reuses its id.
type Process struct {
	PID int
	fd  int // becomes readable when the process ends
}

// Watch returns the process with this id. The error is unix.ESRCH if there is none.
func Watch(t *testing.T, pid int) (*Process, error) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &Process{PID: pid, fd: fd}, nil
}

// PIDIn reads a process id from a file.
func PIDIn(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return pid
}

// AwaitEnd waits until the process has ended. It returns an error if the process still runs after the time within.
func (p *Process) AwaitEnd(within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}},
			int(max(0, time.Until(deadline)).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("process %d: %w", p.PID, err)
		case n == 0:
			return fmt.Errorf("process %d still runs after %v", p.PID, within)
		default:
			return nil
		}
	}
}
