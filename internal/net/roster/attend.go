package roster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
)

// later is the number of ticks by which a launcher notices silence later than ranks do, whose errors tell more.
const later = 3

// Attend watches over rank 0 for the launcher of a run, until stop is called. A run of one rank has nobody else, and
// where all ranks are stopped nobody notices. silent is called, once, if no beat comes for a little more than the
// limit, or none at all for the time first, although the server delivers messages. host returns the host of a rank.
func Attend(ctx context.Context, conn pubsub.Conn, runID string, limit, first time.Duration,
	host func(rank int) string, silent func(*SilentError)) (stop func(), err error) {
	w, own := overRank0(conn, limit, first, host), Subject(runID, "launcher")
	stop, err = subscribeAll(conn, func(m pubsub.Message) { w.receive(m) }, own, beatSubject(runID, "0"))
	if err != nil {
		return nil, fmt.Errorf("watch over run %s: %w", runID, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, stop)
	sent := uint64(0)
	beatOwn := func() {
		sent++
		beat{Rank: launcher, Number: sent}.send(conn, own)
	}
	go w.run(ctx, awake.Of(ctx), beatOwn, w.lookAtRanks, func(err error) {
		s, _ := errors.AsType[*SilentError](err)
		silent(s)
	})
	return cancel, nil
}

// overRank0 returns the watch of a launcher.
func overRank0(conn pubsub.Conn, limit, first time.Duration, host func(rank int) string) *watch {
	w := newWatch(conn, launcher, host, limit)
	w.heard[0] = &sign{at: w.server.at}
	w.more, w.first = later, int(first/(limit/beatsPerLimit))
	return w
}

// lookAtRanks is look without the silence of the server, of which ranks tell themselves.
func (w *watch) lookAtRanks() error {
	err := w.look()
	if _, ok := errors.AsType[*SilentError](err); ok {
		return err
	}
	return nil
}

// maxRuns bounds the runs that Runs returns.
const maxRuns = 1000

// Runs returns the ids of the runs whose ranks give signs of life or publish events on the server within the time, in
// order. conn does not unseal messages: only their subjects are read.
func Runs(ctx context.Context, conn pubsub.Conn, within time.Duration) ([]string, error) {
	var mu sync.Mutex
	found := map[string]bool{}
	stop, err := watchLife(conn, "*", func(m pubsub.Message) {
		words := strings.Split(strings.TrimPrefix(m.Subject, prefix("")), ".")
		mu.Lock()
		defer mu.Unlock()
		if len(found) < maxRuns {
			found[words[0]] = true
		}
	})
	if err == nil {
		defer stop()
		err = flush(ctx, conn, flushTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	select {
	case <-time.After(within):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(found)), nil
}

// WatchLife calls f for every sign of life and event of a rank of the run until stop is called. Calls may overlap.
func WatchLife(conn pubsub.Conn, runID string, f func()) (stop func(), err error) {
	return watchLife(conn, runID, func(pubsub.Message) { f() })
}

func watchLife(conn pubsub.Conn, runID string, f func(pubsub.Message)) (stop func(), err error) {
	if stop, err = subscribeAll(conn, f, beatSubject(runID, "*"), eventSubject(runID, "*")); err != nil {
		return nil, fmt.Errorf("watch the ranks of run %s: %w", runID, err)
	}
	return stop, nil
}
