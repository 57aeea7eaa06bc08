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

// watchSignals returns a context that ends with the first SIGINT or SIGTERM; its cause is a *stopped. A second signal
// ends the process at once.
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

// stopped is the error of a rank that was told to stop before it swept. All ranks stop at a common sweep only later.
type stopped struct{ signal syscall.Signal }

func (e *stopped) Error() string {
	return fmt.Sprintf("stopped by %s before the first sweep", unix.SignalName(e.signal))
}

// die ends the process by the signal, as if it were not caught, so that the launcher ends the other ranks.
func (e *stopped) die() int {
	_ = syscall.Kill(os.Getpid(), e.signal)
	time.Sleep(time.Second) // process 1 of a container ignores its own signal
	return 128 + int(e.signal)
}
