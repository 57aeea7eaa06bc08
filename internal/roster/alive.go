package roster

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/awake"
)

// beatsPerLimit is how many signs of life a rank gives within the limit, so that a few may be lost.
const beatsPerLimit = 10

// SilentError says that a rank gave no sign of life for longer than the limit, while the server was heard.
type SilentError struct {
	Rank   int
	Host   string
	Since  time.Time // of the last sign, or when the watch began
	Sweeps int       // that the rank had done then
	Limit  time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("rank %d on %s was not heard of for %v, since %s, when it had done %d sweeps: "+
		"it is dead, stopped or cut off", e.Rank, e.Host, e.Limit, e.Since.Format(time.TimeOnly), e.Sweeps)
}

// Timeout reports that this is a timeout, as of net.Error: what befell the silent rank comes first.
func (e *SilentError) Timeout() bool { return true }

// ServerError says that this rank did not hear the server for longer than the limit, not even its own signs of life.
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

// Timeout reports that this is a timeout, as of net.Error, unless it is known why: what befell the server comes first.
func (e *ServerError) Timeout() bool { return e.Why == nil }

// beat is a sign of life.
type beat struct {
	Rank   int `json:"rank"`
	Sweeps int `json:"sweeps"`
}

// watch is a rank's look at others: rank 0 looks at all, the others at rank 0. Each also listens to its own beats,
// which the server sends back: while they do not come, the server is silent, and nobody can be heard over it. So
// silence of the others is counted in those ticks alone in which the server was heard. Ticks are of the clock of the
// team's context, and a rank that was stopped itself has few of them however long that took: it blames nobody.
type watch struct {
	team  *Team
	limit time.Duration

	mu     sync.Mutex
	tick   int
	served int // ticks in which the server was heard
	server sign
	heard  map[int]*sign // by rank
}

// sign is the last that was heard.
type sign struct {
	tick   int // of served; for the server, of tick
	at     time.Time
	sweeps int
}

func newWatch(t *Team, limit time.Duration) *watch {
	now := time.Now()
	w := &watch{team: t, limit: limit, server: sign{at: now}, heard: map[int]*sign{}}
	for r := range t.self.Size {
		if r != t.self.Rank && (r == 0 || t.self.Rank == 0) {
			w.heard[r] = &sign{at: now}
		}
	}
	return w
}

// KeepAlive makes this rank give signs of life. After one that has called it falls silent, every rank ends with a
// *SilentError within a little more than the limit; when the server does, with a *ServerError. It returns at once.
func (t *Team) KeepAlive(limit time.Duration) error {
	if t.self.Size == 1 {
		return nil
	}
	w := newWatch(t, limit)
	from := []string{"*"}
	if t.self.Rank != 0 {
		from = []string{"0", strconv.Itoa(t.self.Rank)}
	}
	for _, r := range from {
		if err := t.subscribe(beatSubject(t.self.RunID, r), w.hear); err != nil {
			return err
		}
	}
	go w.run()
	return nil
}

// SetSweeps says how far this rank is.
func (t *Team) SetSweeps(n int) { t.sweeps.Store(int64(n)) }

func (w *watch) hear(m *nats.Msg) {
	var b beat
	if json.Unmarshal(m.Data, &b) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.Rank == w.team.self.Rank {
		w.server = sign{tick: w.tick, at: time.Now()}
	} else if s := w.heard[b.Rank]; s != nil {
		*s = sign{tick: w.served, at: time.Now(), sweeps: b.Sweeps}
	}
}

func (w *watch) run() {
	t := w.team
	interval := w.limit / beatsPerLimit
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	clock := awake.Of(t.ctx)
	for last := clock.Now(); ; {
		w.beat()
		select {
		case <-ticker.C:
		case <-t.ctx.Done():
			return
		}
		now := clock.Now()
		if now-last < interval/2 { // the launcher is stopped, and with it maybe the server
			continue
		}
		last = now
		if silent := w.look(); silent != nil && t.ctx.Err() == nil {
			t.cancel(silent)
			_ = t.Abort(silent) // who cannot be reached finds out as this rank did
			return
		}
	}
}

// beat may be lost: the next one comes soon.
func (w *watch) beat() {
	t := w.team
	if data, err := json.Marshal(beat{Rank: t.self.Rank, Sweeps: int(t.sweeps.Load())}); err == nil {
		_ = t.conn.Publish(beatSubject(t.self.RunID, strconv.Itoa(t.self.Rank)), data)
	}
}

// look counts a tick and says who was not heard of for the limit, the server or the lowest of the ranks.
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
	for r := range w.team.self.Size {
		if s := w.heard[r]; s != nil && w.served-s.tick > beatsPerLimit {
			return &SilentError{Rank: r, Host: w.team.members[r].Host, Since: s.at, Sweeps: s.sweeps, Limit: w.limit}
		}
	}
	return nil
}

func (w *watch) serverError() *ServerError {
	e := &ServerError{Server: "nats.url", Since: w.server.at, Limit: w.limit}
	if c, ok := w.team.conn.(interface {
		Address() string
		Fault() error
	}); ok {
		e.Server, e.Why = c.Address(), c.Fault()
	}
	return e
}
