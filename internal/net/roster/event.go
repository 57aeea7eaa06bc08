package roster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"jacobi/internal/base/pubsub"
)

// The kinds of Event.
const (
	Joined   = "joined"
	Started  = "started"
	Progress = "progress"
	Aborted  = "aborted"
	Finished = "finished" // all outputs are in place, and the ranks have only to end
	Examined = "examined" // in a run that only tries its start; Report is an examine.Rank
	Soaked   = "soaked"   // in a soak; Report is a soak.Event
	Probed   = "probed"   // in a run that measures its machines; Report is a probe.Event
	Stats    = "stats"    // of one rank, if they are wanted; Report is a stats.Rank
)

// Number is a float64 that JSON carries even if it is infinite or NaN: as null, which is read back as NaN.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Event is a message from a rank to the launcher. Events may be lost: they inform, and no decision may rest on them
// alone.
type Event struct {
	Kind        string          `json:"kind"`
	Rank        int             `json:"rank"`
	Run         int             `json:"run,omitempty"` // of a session of several runs
	Host        string          `json:"host,omitempty"`
	Step        string          `json:"step,omitempty"`   // what Sweeps counts: "cycle", or "" for sweeps
	Sweeps      int             `json:"sweeps,omitempty"` // done so far
	MaxSweeps   int             `json:"max_sweeps,omitempty"`
	End         int             `json:"end,omitempty"`  // estimate of the run's sweeps in all; 0 if unknown
	Left        time.Duration   `json:"left,omitempty"` // estimate of the time until then; 0 if unknown
	Norm        Number          `json:"norm"`           // the newest one known
	GLUPs       Number          `json:"glups"`          // 10^9 points updated a second
	Elapsed     time.Duration   `json:"elapsed,omitempty"`
	Text        string          `json:"text,omitempty"`
	Consequence bool            `json:"consequence,omitempty"` // for Aborted: see IsConsequence
	Verdict     string          `json:"verdict,omitempty"`     // for Finished: whether the run did what it was to do
	Report      json.RawMessage `json:"report,omitempty"`
}

// maxText bounds the text of an event or of an abort, in bytes.
const maxText = 8 << 10

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + " …"
}

// Publish sends e, with this rank's number and host, to all that watch. It does not wait for them.
func (t *Comm) Publish(e Event) error {
	if t.parent != nil {
		return t.publishOf(e)
	}
	e.Rank, e.Host, e.Text = t.self.Rank, t.self.Host, clip(e.Text)
	if t.conn == nil {
		t.watching.Lock()
		defer t.watching.Unlock()
		if t.watch != nil {
			t.watch(e)
		}
		return nil
	}
	data, err := json.Marshal(e)
	if err == nil {
		err = t.conn.Publish(eventSubject(t.self.RunID, strconv.Itoa(t.self.Rank)), data)
	}
	if err != nil {
		return fmt.Errorf("publish event %q of rank %d: %w", e.Kind, e.Rank, err)
	}
	return nil
}

// WatchEvents calls f for every event of the run's ranks, one at a time, until stop is called. It drops messages that
// are no events, or that came on another rank's subject. When it returns, the server has the subscription.
func WatchEvents(ctx context.Context, conn pubsub.Conn, runID string, f func(Event)) (stop func(), err error) {
	return watchEvents(ctx, conn, runID, []string{eventSubject(runID, "*")}, f)
}

// WatchRanks is WatchEvents for some ranks of the run. Events of different ranks may call f at the same time.
func WatchRanks(ctx context.Context, conn pubsub.Conn, runID string, ranks []int,
	f func(Event)) (stop func(), err error) {
	var of []string
	for _, rank := range ranks {
		of = append(of, eventSubject(runID, strconv.Itoa(rank)))
	}
	return watchEvents(ctx, conn, runID, of, f)
}

func watchEvents(ctx context.Context, conn pubsub.Conn, runID string, of []string,
	f func(Event)) (stop func(), err error) {
	before := eventSubject(runID, "")
	handle := func(m pubsub.Message) {
		var e Event
		if json.Unmarshal(m.Data, &e) == nil && m.Subject == before+strconv.Itoa(e.Rank) {
			f(e)
		}
	}
	stop, err = subscribeAll(conn, handle, of...)
	if err == nil {
		if err = flush(ctx, conn, flushTimeout); err != nil {
			stop()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("watch the events of run %s: %w", runID, err)
	}
	return stop, nil
}

// subscribeAll has handle called with all messages on subjects until stop is called.
func subscribeAll(conn pubsub.Conn, handle func(pubsub.Message), subjects ...string) (stop func(), err error) {
	var subs []pubsub.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // fails only on a closed connection
		}
	}
	for _, subject := range subjects {
		s, err := conn.Subscribe(subject, handle)
		if err != nil {
			stop()
			return nil, err
		}
		subs = append(subs, s)
	}
	return stop, nil
}

// Watch is WatchEvents for a rank. In a run without a server it calls the newest f alone.
func (t *Comm) Watch(ctx context.Context, f func(Event)) (stop func(), err error) {
	if t.conn != nil {
		return WatchEvents(ctx, t.conn, t.self.RunID, f)
	}
	set := func(f func(Event)) {
		t.watching.Lock()
		defer t.watching.Unlock()
		t.watch = f
	}
	set(f)
	return func() { set(nil) }, nil
}

// AbortAll ends every rank of the run with cause. A launcher calls it when a rank has died.
func AbortAll(ctx context.Context, conn pubsub.Conn, runID string, cause AbortError) error {
	cause.Cause = clip(cause.Cause)
	data, err := json.Marshal(cause)
	if err == nil {
		err = publishAndFlush(ctx, conn, abortSubject(runID), data)
	}
	if err != nil {
		return fmt.Errorf("abort run %s: %w", runID, err)
	}
	return nil
}

// RequestStop asks every rank to stop, at a common sweep, a run of a session, or with number 0 everything, and to write
// its results.
func RequestStop(ctx context.Context, conn pubsub.Conn, runID string, number int) error {
	var data []byte
	if number > 0 {
		data = []byte(strconv.Itoa(number))
	}
	if err := publishAndFlush(ctx, conn, stopSubject(runID), data); err != nil {
		return fmt.Errorf("stop run %s: %w", runID, err)
	}
	return nil
}

func publishAndFlush(ctx context.Context, conn pubsub.Conn, subject string, data []byte) error {
	if err := conn.Publish(subject, data); err != nil {
		return err
	}
	return flush(ctx, conn, flushTimeout)
}

// Progress returns the progress of the run in words.
func (e Event) Progress() string {
	text := fmt.Sprintf("%d %s", e.Sweeps, e.Goal())
	if e.End > 0 {
		text += fmt.Sprintf(" (%d%%)", int(100*e.Share()))
	}
	return text + ", " + e.Status()
}

// Goal returns how many sweeps the run will do, in words.
func (e Event) Goal() string {
	steps := cmp.Or(e.Step, "sweep") + "s"
	switch {
	case e.End > 0 && e.End < e.MaxSweeps && e.End > e.Sweeps:
		return fmt.Sprintf("of about %d %s", rounded(e.End), steps)
	case e.End > 0:
		return fmt.Sprintf("of %d %s", e.End, steps)
	default:
		return fmt.Sprintf("of at most %d %s", e.MaxSweeps, steps)
	}
}

// Share returns the share of the run's sweeps that is done, 0 to 1; 0 if the end is not known.
func (e Event) Share() float64 {
	if e.End <= 0 {
		return 0
	}
	return min(1, float64(e.Sweeps)/float64(e.End))
}

// Status returns the part of Progress after the number of sweeps: norm, speed and time left.
func (e Event) Status() string {
	text := fmt.Sprintf("norm %.4e, %.3f GLUP/s", float64(e.Norm), float64(e.GLUPs))
	if e.Left > 0 {
		text += fmt.Sprintf(", about %s left", Coarse(e.Left))
	}
	return text
}

// rounded rounds an estimate to three digits.
func rounded(n int) int {
	unit := int(math.Pow(10, max(0, math.Floor(math.Log10(float64(n)))-2)))
	return (n + unit/2) / unit * unit
}

// Coarse formats an estimated duration with as many digits as it deserves: 18 s, 3m40s, 25m, 1h50m, 3 days.
func Coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(1, math.Round(d.Seconds()))))
	case d < 10*time.Minute:
		d = d.Round(10 * time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour-time.Minute/2:
		return fmt.Sprintf("%dm", d.Round(time.Minute)/time.Minute)
	case d < 48*time.Hour:
		d = d.Round(10 * time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 2*365*24*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	default:
		return fmt.Sprintf("%.0f years", d.Hours()/24/365)
	}
}
