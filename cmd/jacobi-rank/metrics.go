package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/metrics"
)

// lastTimeout bounds rank 0's wait for the final statistics of the other ranks, which may be on their way at the end.
const lastTimeout = time.Second

// served are the metrics of a run.
type served struct {
	wanted bool            // the ranks publish statistics
	server *metrics.Server // nil unless this is rank 0 of a run without a launcher
	cfg    configs.Metrics
	log    *zap.Logger
}

// serveMetrics serves the metrics if this rank has to.
func serveMetrics(c configs.Config, origin roster.Origin, t configs.Task, log *zap.Logger) (s served, err error) {
	s.cfg, s.log = c.Metrics, log
	if origin.By == roster.ByLauncher {
		s.wanted = t.Stats
		return s, nil
	}
	if s.wanted = c.Metrics.Listen != "" && t.Probe == nil; !s.wanted || origin.Rank != 0 {
		return s, nil
	}
	c.Run.Ranks = origin.Size
	run := metrics.NewRun()
	run.Begin(metrics.InfoOf(c, c.Working()))
	if s.server, err = metrics.Listen(c.Metrics.Listen, run); err == nil {
		log.Info("metrics: " + s.server.URL())
	}
	return s, err
}

// watch returns what takes the events of the run; nil if nothing does.
func (s served) watch() func(roster.Event) {
	if s.server == nil {
		return nil
	}
	return s.server.Run().Event
}

// awaitLast waits for the final statistics of all ranks.
func (s served) awaitLast(ctx context.Context) {
	if s.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	select {
	case <-s.server.Run().Complete():
	case <-ctx.Done():
	}
}

// linger leaves the metrics of a run that has ended for one more scrape.
func (s served) linger(ctx context.Context) {
	if s.server == nil || s.cfg.Linger <= 0 {
		return
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	s.server.End()
	s.log.Sugar().Infof("waiting up to %s for a scrape of the metrics", s.cfg.Linger)
	s.server.Linger(ctx, s.cfg.Linger)
}

// close ends the server.
func (s served) close() {
	if s.server != nil {
		_ = s.server.Close() // the run has ended; there is nothing to do about it
	}
}
