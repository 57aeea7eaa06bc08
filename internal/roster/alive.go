package roster

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// beatsPerLimit is how many signs of life a rank gives within the limit, so that a few may be lost.
const beatsPerLimit = 10

// SilentError says that a rank gave no sign of life for longer than the limit.
type SilentError struct {
	Rank   int
	Host   string
	Since  time.Time // of the last sign, or when the watch began
	Sweeps int       // that the rank had done then
	Limit  time.Duration
	CutOff bool // this rank has no connection to the server itself
}

func (e *SilentError) Error() string {
	why := "it is dead, stopped or cut off"
	if e.CutOff {
		why = "this rank is cut off from the NATS server"
	}
	return fmt.Sprintf("rank %d on %s was not heard of for %v, since %s, when it had done %d sweeps: %s", e.Rank, e.Host, e.Limit,
		e.Since.Format(time.TimeOnly), e.Sweeps, why)
}

// Timeout reports that this is a timeout, as of net.Error: what befell the silent rank comes first.
func (e *SilentError) Timeout() bool { return true }

// beat is a sign of life.
type beat struct {
	Rank   int `json:"rank"`
	Sweeps int `json:"sweeps"`
}

// watch is a rank's look at others: rank 0 looks at all, the others at rank 0. Silence is counted in the ticks of its own clock, so that
// a rank that was stopped itself, and finds many beats waiting, blames nobody.
type watch struct {
	team  *Team
	limit time.Duration

	mu    sync.Mutex
	tick  int
	heard map[int]*sign // by rank
}

// sign is the last that was heard of a rank.
type sign struct {
	tick   int
	at     time.Time
	sweeps int
}

// KeepAlive makes this rank give signs of life, and ends the run with a *SilentError on every rank within a little more than the limit
// after one that has called it falls silent. It returns at once.
func (t *Team) KeepAlive(limit time.Duration) error {
	if t.self.Size == 1 {
		return nil
	}
	w := &watch{team: t, limit: limit, heard: map[int]*sign{}}
	subject := beatSubject(t.self.RunID, "0")
	if t.self.Rank == 0 {
		subject = beatSubject(t.self.RunID, "*")
	}
	for r := range t.self.Size {
		if r != t.self.Rank && (r == 0 || t.self.Rank == 0) {
			w.heard[r] = &sign{at: time.Now()}
		}
	}
	if err := t.subscribe(subject, w.hear); err != nil {
		return err
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
	if s := w.heard[b.Rank]; s != nil {
		*s = sign{tick: w.tick, at: time.Now(), sweeps: b.Sweeps}
	}
}

func (w *watch) run() {
	t := w.team
	ticker := time.NewTicker(w.limit / beatsPerLimit)
	defer ticker.Stop()
	for {
		w.beat()
		select {
		case <-ticker.C:
		case <-t.ctx.Done():
			return
		}
		if silent := w.silent(); silent != nil && t.ctx.Err() == nil {
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
		_ = t.conn.Publish(beatSubject(t.self.RunID, fmt.Sprint(t.self.Rank)), data)
	}
}

// silent counts a tick and returns the rank that was not heard of for the limit, the lowest if there are several.
func (w *watch) silent() *SilentError {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick++
	for r := range w.team.self.Size {
		if s := w.heard[r]; s != nil && w.tick-s.tick > beatsPerLimit {
			e := &SilentError{Rank: r, Host: w.team.members[r].Host, Since: s.at, Sweeps: s.sweeps, Limit: w.limit}
			if c, ok := w.team.conn.(interface{ Status() nats.Status }); ok {
				e.CutOff = c.Status() != nats.CONNECTED
			}
			return e
		}
	}
	return nil
}
