package roster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
)

// later is the number of ticks by which a launcher notices silence later than ranks do, whose errors tell more.
const later = 3

// Attend watches over rank 0 for the launcher of a run, until stop is called. A run of one rank has nobody else, and
// where all ranks are stopped nobody notices. silent is called, once, if no beat comes for a little more than the
// limit, or none at all for the time first, although the server delivers messages. host returns the host of a rank.
func Attend(ctx context.Context, conn Conn, runID string, limit, first time.Duration, host func(rank int) string,
	silent func(*SilentError)) (stop func(), err error) {
	w := overRank0(conn, limit, first, host)
	ctx, cancel := context.WithCancel(ctx)
	own := Subject(runID, "launcher")
	for _, subject := range []string{own, beatSubject(runID, "0")} {
		sub, err := conn.Subscribe(subject, func(m pubsub.Message) { w.receive(m) })
		if err != nil {
			cancel()
			return nil, fmt.Errorf("watch over run %s: %w", runID, err)
		}
		context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() }) // fails only on a closed connection
	}
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
func overRank0(conn Conn, limit, first time.Duration, host func(rank int) string) *watch {
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
