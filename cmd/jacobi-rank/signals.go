package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"jacobi/internal/run/rank"
)

// watchSignals returns a context that ends with the first SIGINT or SIGTERM; its cause is a *rank.StopError. A second
// signal ends the process at once.
func watchSignals(ctx context.Context) context.Context {
	stop, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			number, _ := s.(syscall.Signal)
			cancel(&rank.StopError{Signal: number})
		case <-ctx.Done():
		}
	}()
	return stop
}

// die ends the process by the signal, as if it were not caught, so that the launcher ends the other ranks. It returns
// the exit code for a process that outlives its own signal.
func die(by syscall.Signal) int {
	_ = syscall.Kill(os.Getpid(), by)
	time.Sleep(time.Second) // process 1 of a container ignores its own signal
	return 128 + int(by)
}
