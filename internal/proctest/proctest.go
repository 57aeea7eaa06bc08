// Package proctest awaits, in tests, the end of processes that need not be children of the test.
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

// Process is a process that may have ended since; its number is never taken for that of another one.
type Process struct {
	PID int
	fd  int // becomes readable when the process ends
}

// Watch returns the process of that number, or unix.ESRCH if there is none.
func Watch(t *testing.T, pid int) (*Process, error) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &Process{PID: pid, fd: fd}, nil
}

// PIDIn reads a file that holds the number of a process.
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

// AwaitEnd returns nil once the process has ended, and an error if it lives for longer than that.
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
