package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/metrics"
)

// lastTimeout bounds rank 0's wait for the final statistics of the other ranks, which may be on their way at the end.
const lastTimeout = time.Second

// serveMetrics serves the metrics of a run if this rank has to: rank 0, without a launcher. Otherwise it returns nil.
func serveMetrics(c configs.Config, origin roster.Origin, log *zap.Logger) (*metrics.Server, error) {
	if origin.By == roster.ByLauncher || origin.Rank != 0 {
		return nil, nil
	}
	c.Run.Ranks = origin.Size
	run := metrics.NewRun()
	run.Begin(metrics.InfoOf(c, c.Working()))
	return metrics.Serve(c.Metrics, run, func(text string) { log.Info(text) })
}

// awaitLast waits for the final statistics of all ranks.
func awaitLast(ctx context.Context, run *metrics.Run) {
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	select {
	case <-run.Complete():
	case <-ctx.Done():
	}
}
