package view

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// linger is how long the page of a run that has ended waits for a first browser.
const linger = 5 * time.Second

// Linger leaves the page of a run that has ended for a browser that has not opened it yet. It announces the wait by
// say. ctx and signals end it.
func (s *Server) Linger(ctx context.Context, say func(text string)) {
	select {
	case <-s.seen:
		return
	default:
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	late := time.NewTimer(linger)
	defer late.Stop()
	say(fmt.Sprintf("waiting up to %v for a browser at the view; Ctrl-C ends that", linger))
	select {
	case <-s.seen:
	case <-late.C:
	case <-ctx.Done():
	}
}
