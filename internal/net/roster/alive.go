package roster

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

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
	return fmt.Sprintf("rank %d on %s was silent for %v, since %s, when it had done %d iterations: "+
		"it is dead, stopped or cut off", e.Rank, e.Host, e.Limit, e.Since.Format(time.TimeOnly), e.Sweeps)
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

// watch checks the beats of other ranks: rank 0 checks all, the others check rank 0. Each rank also listens to its own
// beats, which the server sends back. While they are missing, the server is silent, and beats of other ranks cannot
// arrive either. So the silence of ranks is counted only in ticks in which the server was heard. Ticks follow the clock
// of the process: a rank that was stopped counts few of them, however long it was stopped, and blames no other rank.
type watch struct {
	comm  *Comm
	limit time.Duration
	sent  uint64 // beats; run owns it

	mu     sync.Mutex
	tick   int
	served int // ticks in which the server was heard
	server sign
	heard  map[int]*sign // the last beats of other ranks, by rank
}

// sign is the newest beat received.
type sign struct {
	number uint64
	tick   int // value of served at the time; for the server, of tick
	at     time.Time
	sweeps int
}

func newWatch(t *Comm, limit time.Duration) *watch {
	now := time.Now()
	w := &watch{comm: t, limit: limit, server: sign{at: now}, heard: map[int]*sign{}}
	for r := range t.self.Size {
		if r != t.self.Rank && (r == 0 || t.self.Rank == 0) {
			w.heard[r] = &sign{at: now}
		}
	}
	return w
}

// KeepAlive starts to send beats and to check those of other ranks. If a rank that has called it falls silent, every
// rank ends with a *SilentError within a little more than the limit; if the server does, with a *ServerError. It
// returns at once.
func (t *Comm) KeepAlive(limit time.Duration) error {
	t.work.begin(limit / beatsPerLimit)
	if t.self.Size == 1 {
		return nil
	}
	w := newWatch(t, limit)
	from := []string{"*"}
	if t.self.Rank != 0 {
		from = []string{"0", strconv.Itoa(t.self.Rank)}
	}
	for _, r := range from {
		if err := t.subscribe(beatSubject(t.self.RunID, r), w.receive); err != nil {
			return err
		}
	}
	go w.run()
	return nil
}

// SetIterations sets the number of iterations that this rank's beats report.
func (t *Comm) SetIterations(n int) { t.sweeps.Store(int64(n)) }

// Iterations returns the number that SetIterations was given last.
func (t *Comm) Iterations() int { return int(t.sweeps.Load()) }

func (w *watch) receive(m pubsub.Message) {
	var b beat
	if json.Unmarshal(m.Data, &b) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last, tick := w.heard[b.Rank], w.served
	if b.Rank == w.comm.self.Rank {
		last, tick = &w.server, w.tick
	}
	if last != nil && b.Number > last.number {
		*last = sign{number: b.Number, tick: tick, at: time.Now(), sweeps: b.Sweeps}
	}
	if last != nil && last != &w.server {
		w.comm.work.hear(b.Rank, b.Work)
	}
}

func (w *watch) run() {
	t := w.comm
	interval := w.limit / beatsPerLimit
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	clock := t.clock
	for last := clock.Now(); ; {
		w.beat()
		select {
		case <-ticker.C:
		case <-t.ctx.Done():
			return
		}
		now := clock.Now()
		if now-last < interval/2 { // the launcher is stopped, and so may the server be
			continue
		}
		last = now
		if silent := w.look(); silent != nil && t.ctx.Err() == nil {
			t.cancel(silent)
			_ = t.Abort(silent) // ranks that it does not reach find out as this one did
			return
		}
	}
}

// beat sends a beat. It may be lost: the next one follows soon.
func (w *watch) beat() {
	t := w.comm
	w.sent++
	b := beat{Rank: t.self.Rank, Number: w.sent, Sweeps: int(t.sweeps.Load()), Work: t.work.own()}
	if b.Rank == 0 {
		b.Work = t.work.sum()
	}
	if data, err := json.Marshal(b); err == nil {
		_ = t.conn.Publish(beatSubject(t.self.RunID, strconv.Itoa(t.self.Rank)), data)
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
	for r := range w.comm.self.Size {
		if s := w.heard[r]; s != nil && w.served-s.tick > beatsPerLimit {
			return &SilentError{Rank: r, Host: w.comm.Member(r).Host, Since: s.at, Sweeps: s.sweeps, Limit: w.limit}
		}
	}
	return nil
}

func (w *watch) serverError() *ServerError {
	e := &ServerError{Server: "nats.url", Since: w.server.at, Limit: w.limit}
	if c, ok := w.comm.conn.(interface {
		Address() string
		Fault() error
	}); ok {
		e.Server, e.Why = c.Address(), c.Fault()
	}
	return e
}
