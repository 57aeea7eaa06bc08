package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/run/attempt"
)

// serveMetrics opens the server of metrics.listen; nil without that key.
func serveMetrics(c configs.Metrics, scr *screen) (*metrics.Server, error) {
	if c.Listen == "" {
		return nil, nil
	}
	m, err := metrics.Listen(c.Listen, metrics.NewRun())
	if err == nil {
		scr.Say("metrics: " + m.URL())
	}
	return m, err
}

// linger leaves the metrics of a run that has ended for one more scrape.
func linger(ctx context.Context, m *metrics.Server, c configs.Metrics, scr *screen) {
	if c.Linger <= 0 {
		return
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	m.End()
	scr.Say(fmt.Sprintf("waiting up to %s for a scrape of the metrics; Ctrl-C ends that", c.Linger))
	m.Linger(ctx, c.Linger)
}

// measured passes events on to the metrics.
type measured struct{ *metrics.Run }

// Close implements attempt.Progress.
func (measured) Close() {}

// several passes events on to each of several.
type several []attempt.Progress

// Event implements attempt.Progress.
func (s several) Event(e roster.Event) {
	for _, p := range s {
		p.Event(e)
	}
}

// Close implements attempt.Progress.
func (s several) Close() {
	for _, p := range s {
		p.Close()
	}
}
