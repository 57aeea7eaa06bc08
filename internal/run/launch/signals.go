package launch

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// NotifySignals returns a channel of the signals that end or suspend a run, until stop is called.
//
// SIGPIPE ends a run if stdout or stderr has no reader. A write to a closed connection raises it as well, for example
// to the server of a run that has ended; such a SIGPIPE is ignored.
func NotifySignals() (signals <-chan os.Signal, stop func()) {
	all, ending, done := make(chan os.Signal, 16), make(chan os.Signal, 16), make(chan struct{})
	signal.Notify(all, os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(all, syscall.SIGHUP)
	}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(all, syscall.SIGTSTP)
	}
	go func() {
		for {
			select {
			case s := <-all:
				if s == syscall.SIGPIPE && !unread(unix.Stdout, unix.Stderr) {
					continue
				}
				select {
				case ending <- s:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ending, func() { signal.Stop(all); close(done) }
}

// StopSelf stops this process, as Ctrl-Z stops one that does not catch SIGTSTP, and returns after SIGCONT.
func StopSelf() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	// SIGTSTP would not do: the kernel ignores it for a process group that no shell can continue.
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err == nil {
		<-goesOn
	}
}

// unread reports whether one of the files is a pipe or terminal without a reader.
func unread(fds ...int) bool { return lost(0, fds...) }

// AwaitUnread returns when a file that is a pipe or terminal has no reader any more, and else never.
func AwaitUnread(fd int) { lost(-1, fd) }

// lost reports whether one of the files loses its reader within the time, in ms; -1 waits for that.
func lost(within int, fds ...int) bool {
	var polls []unix.PollFd
	for _, fd := range fds {
		polls = append(polls, unix.PollFd{Fd: int32(fd)})
	}
	for {
		_, err := unix.Poll(polls, within)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		for _, p := range polls {
			if p.Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				return true
			}
		}
		return false
	}
}
