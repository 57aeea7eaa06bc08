package launch

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// brokenPipe returns the write end of a pipe without a reader.
func brokenPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	r.Close()
	return w
}

// A write to a broken connection, other than stdout and stderr, does not end a run.
func TestSignalsIgnoreABrokenConnection(t *testing.T) {
	signals, stop := NotifySignals()
	defer stop()
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGPIPE)
	defer signal.Stop(came)
	if _, err := brokenPipe(t).Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	<-came
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := <-signals; s != syscall.SIGTERM {
		t.Errorf("the first signal is %v, want %v", s, syscall.SIGTERM)
	}
}

func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if unread(int(w.Fd())) {
		t.Error("a pipe that is open passes for one that nobody reads")
	}
	if !unread(int(w.Fd()), int(brokenPipe(t).Fd())) {
		t.Error("a pipe that nobody reads passes for one that is open")
	}
}
