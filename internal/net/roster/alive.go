package roster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
)

// beatsPerLimit is the number of beats that a rank sends within the limit, so that a few may be lost.
const beatsPerLimit = 10

// SilentError reports that a rank sent no beat for longer than the limit, although the server delivered this rank's
// own.
type SilentError struct {
	Rank   int
	Host   string
	Since  time.Time // time of the last beat, or of the start of the watch
	Sweeps int       // done by the rank at that time
	Limit  time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("rank %d on %s %s", e.Rank, e.Host, e.Words())
}

// Words says what the rank did.
func (e *SilentError) Words() string {
	return fmt.Sprintf("was silent for %v, since %s, when it had done %d iterations: it is dead, stopped or cut off",
		e.Limit, e.Since.Format(time.TimeOnly), e.Sweeps)
}

// Timeout reports that the error is a timeout: the failure of the silent rank is the cause.
func (e *SilentError) Timeout() bool { return true }

// ServerError reports that this rank received nothing from the server for longer than the limit, not even its own
// beats.
type ServerError struct {
	Server string // its address
	Since  time.Time
	Limit  time.Duration
	Why    error // why the connection could not be made again; may be nil
}

func (e *ServerError) Error() string {
	since := fmt.Sprintf("for %v, since %s", e.Limit, e.Since.Format(time.TimeOnly))
	if e.Why != nil {
		return fmt.Sprintf("nothing was heard from the NATS server %s: %v", since, e.Why)
	}
	return fmt.Sprintf("nothing was heard from the NATS server at %s %s: it is gone or stopped, or "+
		"this rank is cut off from it", e.Server, since)
}

// Timeout reports that the error is a timeout, unless its reason is known: then it is the first cause.
func (e *ServerError) Timeout() bool { return e.Why == nil }

// beat is a sign of life of a rank. The server may deliver it again, late, or to a client that sends it again.
type beat struct {
	Rank   int    `json:"rank"`
	Number uint64 `json:"number"` // counts the rank's beats from 1
	Sweeps int    `json:"sweeps"`
	Work   uint64 `json:"work"` // see work; from rank 0, that of all ranks
}

// watch checks the beats of ranks: rank 0 checks those of all others, these check rank 0, and so does a launcher. Each
// of them also listens to its own beats, which the server sends back. While they are missing, the server is silent, and
// beats of ranks cannot arrive either. So the silence of ranks is counted only in ticks in which the server was heard.
// Ticks follow the clock of the process: a rank that was stopped counts few of them, however long it was stopped, and
// blames no other rank.
type watch struct {
	conn  pubsub.Conn
	self  int                   // a rank, or launcher
	host  func(rank int) string // of a rank
	limit time.Duration

	mu     sync.Mutex
	tick   int
	served int // ticks in which the server was heard
	server sign
	heard  map[int]*sign // the last beats of other ranks, by rank
	more   int           // ticks beyond the limit that a rank may be silent
	first  int           // ticks that a rank may be silent before its first beat; 0: as later
}

// launcher stands for the launcher among ranks.
const launcher = -1

// sign is the newest beat received.
type sign struct {
	number uint64
	tick   int // value of served at the time; for the server, of tick
	at     time.Time
	sweeps int
}

// newWatch returns the watch of rank self over no ranks.
func newWatch(conn pubsub.Conn, self int, host func(rank int) string, limit time.Duration) *watch {
	return &watch{conn: conn, self: self, host: host, limit: limit, server: sign{at: time.Now()},
		heard: map[int]*sign{}}
}

// KeepAlive starts to send beats and to check those of other ranks. If a rank that has called it falls silent, every
// rank ends with a *SilentError within a little more than the limit; if the server does, with a *ServerError. It
// returns at once. A single rank only sends beats, to its launcher.
func (t *Comm) KeepAlive(limit time.Duration) error {
	t.work.begin(limit / beatsPerLimit)
	if t.conn == nil {
		return nil
	}
	w, from := t.newWatch(limit), []string{"0", strconv.Itoa(t.self.Rank)}
	switch {
	case t.self.Size == 1:
		from = nil
	case t.self.Rank == 0:
		from = []string{"*"}
	}
	for _, r := range from {
		if err := t.subscribe(beatSubject(t.self.RunID, r), t.receiveBeat(w)); err != nil {
			return err
		}
	}
	go t.keepAlive(w)
	return nil
}

func (t *Comm) newWatch(limit time.Duration) *watch {
	w := newWatch(t.conn, t.self.Rank, func(rank int) string { return t.Member(rank).Host }, limit)
	for r := range t.self.Size {
		if r != t.self.Rank && (r == 0 || t.self.Rank == 0) {
			w.heard[r] = &sign{at: w.server.at}
		}
	}
	return w
}

func (t *Comm) keepAlive(w *watch) {
	look := w.look
	if t.self.Size == 1 {
		look = func() error { return nil }
	}
	w.run(t.ctx, t.clock, t.beat(), look, func(silent error) {
		t.cancel(silent)
		_ = t.Abort(silent) // ranks that it does not reach find out as this one did
	})
}

// SetIterations sets the number of iterations that this rank's beats report.
func (t *Comm) SetIterations(n int) { t.sweeps.Store(int64(n)) }

// Iterations returns the number that SetIterations was given last.
func (t *Comm) Iterations() int { return int(t.sweeps.Load()) }

// beat returns a function that sends a beat. It may be lost: the next one follows soon.
func (t *Comm) beat() func() {
	sent := uint64(0)
	return func() {
		sent++
		b := beat{Rank: t.self.Rank, Number: sent, Sweeps: t.Iterations(), Work: t.work.own()}
		if b.Rank == 0 {
			b.Work = t.work.sum()
		}
		b.send(t.conn, beatSubject(t.self.RunID, strconv.Itoa(b.Rank)))
	}
}

func (b beat) send(conn pubsub.Conn, subject string) {
	if data, err := json.Marshal(b); err == nil {
		_ = conn.Publish(subject, data)
	}
}

// receiveBeat takes the beats that w checks, and what they tell of work.
func (t *Comm) receiveBeat(w *watch) func(pubsub.Message) {
	return func(m pubsub.Message) {
		if b, ok := w.receive(m); ok && b.Rank != t.self.Rank {
			t.work.hear(b.Rank, b.Work)
		}
	}
}

// receive takes a beat. ok is false for messages that are none of those that w checks.
func (w *watch) receive(m pubsub.Message) (b beat, ok bool) {
	if json.Unmarshal(m.Data, &b) != nil {
		return b, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last, tick := w.heard[b.Rank], w.served
	if b.Rank == w.self {
		last, tick = &w.server, w.tick
	}
	if last != nil && b.Number > last.number {
		*last = sign{number: b.Number, tick: tick, at: time.Now(), sweeps: b.Sweeps}
	}
	return b, last != nil
}

// run sends beats and looks for silence until it finds some, or ctx ends.
func (w *watch) run(ctx context.Context, clock *awake.Clock, beat func(), look func() error, silent func(error)) {
	interval := w.limit / beatsPerLimit
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for last := clock.Now(); ; {
		beat()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := clock.Now()
		if now-last < interval/2 { // the launcher is stopped, and so may the server be
			continue
		}
		last = now
		if err := look(); err != nil && ctx.Err() == nil {
			silent(err)
			return
		}
	}
}

// look counts a tick. It returns an error if the server was silent for the limit, or else the lowest rank that was.
func (w *watch) look() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick++
	switch silent := w.tick - w.server.tick; {
	case silent > beatsPerLimit:
		return w.serverError()
	case silent > 1:
		return nil
	}
	w.served++
	for _, r := range slices.Sorted(maps.Keys(w.heard)) {
		s, most := w.heard[r], beatsPerLimit+w.more
		if s.number == 0 {
			most = max(most, w.first)
		}
		if w.served-s.tick > most {
			return &SilentError{Rank: r, Host: w.host(r), Since: s.at, Sweeps: s.sweeps, Limit: w.limit}
		}
	}
	return nil
}

func (w *watch) serverError() *ServerError {
	e := &ServerError{Server: "nats.url", Since: w.server.at, Limit: w.limit}
	if c, ok := w.conn.(interface {
		Address() string
		Fault() error
	}); ok {
		e.Server, e.Why = c.Address(), c.Fault()
	}
	return e
}
