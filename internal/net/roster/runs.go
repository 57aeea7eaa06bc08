package roster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"jacobi/internal/base/pubsub"
)

// maxRuns bounds the runs that Runs returns.
const maxRuns = 1000

// Runs returns the ids of the runs whose ranks give signs of life or publish events on the server within the time, in
// order. conn does not unseal messages: only their subjects are read.
func Runs(ctx context.Context, conn Conn, within time.Duration) ([]string, error) {
	var mu sync.Mutex
	found := map[string]bool{}
	stop, err := watchLife(conn, "*", func(subject string) {
		words := strings.Split(strings.TrimPrefix(subject, prefix("")), ".")
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

// WatchLife calls f for every sign of life and event of a rank of the run until stop is called.
func WatchLife(conn Conn, runID string, f func()) (stop func(), err error) {
	return watchLife(conn, runID, func(string) { f() })
}

func watchLife(conn Conn, runID string, f func(subject string)) (stop func(), err error) {
	var subs []pubsub.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // fails only on a closed connection
		}
	}
	for _, subject := range []string{beatSubject(runID, "*"), eventSubject(runID, "*")} {
		s, err := conn.Subscribe(subject, func(m pubsub.Message) { f(m.Subject) })
		if err != nil {
			stop()
			return nil, fmt.Errorf("watch the ranks of run %s: %w", runID, err)
		}
		subs = append(subs, s)
	}
	return stop, nil
}
