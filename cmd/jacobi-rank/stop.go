package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchSignals returns a context that ends with the first SIGINT or SIGTERM, a *stopped as its cause. A second one ends
// the process at once.
func watchSignals(ctx context.Context) context.Context {
	stop, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			number, _ := s.(syscall.Signal)
			cancel(&stopped{number})
		case <-ctx.Done():
		}
	}()
	return stop
}

// stopped is how a rank ends that is told to stop before it sweeps: there is no common sweep yet at which all could.
type stopped struct{ signal syscall.Signal }

func (e *stopped) Error() string {
	return fmt.Sprintf("stopped by %s before the first sweep", unix.SignalName(e.signal))
}

// die ends the process by the signal that it got, as one that had not listened, so that the launcher ends the others.
func (e *stopped) die() int {
	_ = syscall.Kill(os.Getpid(), e.signal)
	time.Sleep(time.Second) // the first process of a container survives its own signal
	return 128 + int(e.signal)
}
