// Package events is what launcher --json writes: one JSON object a line. docs/outputs.md lists all keys.
package events

import (
	"cmp"
	"encoding/json"
	"io"
	"sync"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
)

// Schema is the version of the format. It changes when a key changes its meaning or goes, not when there are new keys.
const Schema = 2

// Event is a line. The part that Event names is set.
type Event struct {
	Event    string          `json:"event"` // plan, message, progress, stats, report or end
	Time     time.Time       `json:"time"`
	Plan     *Plan           `json:"plan,omitempty"`
	Message  *Message        `json:"message,omitempty"`
	Progress *Progress       `json:"progress,omitempty"`
	Stats    *Stats          `json:"stats,omitempty"`
	Report   json.RawMessage `json:"report,omitempty"` // as report.json
	End      *End            `json:"end,omitempty"`
}

// Plan is what a start of the run will do. It comes before the ranks start, again with each restart.
type Plan struct {
	Schema  int             `json:"schema"`
	Version string          `json:"version"` // of the program
	Start   int             `json:"start"`   // 1, and one more with each restart
	Text    string          `json:"text"`
	Depth   int             `json:"depth"`
	Ranks   []Rank          `json:"ranks"`
	Config  json.RawMessage `json:"config"` // all keys, without secrets
}

// Rank is the place of a rank.
type Rank struct {
	Rank        int    `json:"rank"`
	Host        string `json:"host"`
	LocalRank   int    `json:"local_rank"`
	Stripe      [2]int `json:"stripe"` // rows [lo, hi)
	MemoryBytes int64  `json:"memory_bytes"`
	GPU         *int   `json:"gpu,omitempty"` // CUDA's index, where it is known before the start
}

// Message is a line of the launcher.
type Message struct {
	Level string `json:"level"` // info, warn or error
	Text  string `json:"text"`
}

// Progress says how far the run is, a few times a second. A value that is not known is absent.
type Progress struct {
	Step          string   `json:"step"`       // what iterations are: sweep or cycle
	Iterations    int      `json:"iterations"` // done, with those before a restart
	MaxIterations int      `json:"max_iterations"`
	Expected      int      `json:"expected_iterations,omitempty"` // estimate for the whole run
	Left          *float64 `json:"left_seconds,omitempty"`        // estimate of the time until then
	Elapsed       float64  `json:"elapsed_seconds"`               // since the first iteration of this start
	Norm          *float64 `json:"norm,omitempty"`
	GLUPs         *float64 `json:"glups,omitempty"` // 10^9 updates of points a second since then
}

// Stats is what a rank tells about once a second.
type Stats struct {
	Rank int `json:"rank"`
	told
}

// told is embedded, so that its keys stand beside rank.
type told = stats.Rank

// End is the last line.
type End struct {
	ExitCode int    `json:"exit_code"`
	Verdict  string `json:"verdict,omitempty"` // of the report, or not_done
	Error    string `json:"error,omitempty"`   // why nothing was started
}

// ProgressOf returns the progress that e tells.
func ProgressOf(e roster.Event) *Progress {
	p := &Progress{Step: cmp.Or(e.Step, "sweep"), Iterations: e.Sweeps, MaxIterations: e.MaxSweeps, Expected: e.End,
		Elapsed: e.Elapsed.Seconds(), Norm: known(e.Norm), GLUPs: known(e.GLUPs)}
	if e.End > 0 {
		p.Left = new(e.Left.Seconds())
	}
	return p
}

// known returns n, or nil if JSON has no form for it.
func known(n roster.Number) *float64 {
	if f := float64(n); f-f == 0 { // not infinite and not NaN
		return &f
	}
	return nil
}

// StatsOf returns what e tells of its rank. ok is false if it cannot be read.
func StatsOf(e roster.Event) (s *Stats, ok bool) {
	t, err := stats.Parse(e.Report)
	return &Stats{Rank: e.Rank, told: t}, err == nil
}

// maxQueue bounds the lines that wait for a slow reader before progress and statistics are left out.
const maxQueue = 64

// Writer writes events in a goroutine of its own, so that a slow reader does not hold up a run. A nil *Writer writes
// nothing.
type Writer struct {
	Verdict string // of the report, for the last event; the caller's

	w   io.Writer
	now func() time.Time

	mu     sync.Mutex
	queue  [][]byte
	fault  error
	more   chan struct{} // holds a token if the queue has lines or the Writer is closed
	closed bool
	ended  chan struct{}
}

// NewWriter returns a Writer of lines to w.
func NewWriter(w io.Writer) *Writer {
	e := &Writer{w: w, now: time.Now, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go e.run()
	return e
}

// Write writes an event, whose time it sets.
func (w *Writer) Write(e Event) {
	if w == nil {
		return
	}
	e.Time = w.now()
	line, err := json.Marshal(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.fault = err
	}
	if err != nil || w.closed || len(w.queue) >= maxQueue && (e.Progress != nil || e.Stats != nil) {
		return
	}
	w.queue = append(w.queue, append(line, '\n'))
	w.signal()
}

func (w *Writer) signal() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// run writes the queue until the Writer is closed. After a failure it writes nothing more.
func (w *Writer) run() {
	defer close(w.ended)
	for range w.more {
		w.mu.Lock()
		lines, closed, failed := w.queue, w.closed, w.fault != nil
		w.queue = nil
		w.mu.Unlock()
		for _, line := range lines {
			if failed {
				break
			}
			if _, err := w.w.Write(line); err != nil {
				w.mu.Lock()
				w.fault, failed = err, true
				w.mu.Unlock()
			}
		}
		if closed {
			return
		}
	}
}

// Close waits until all events are written, and returns the first error.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.ended
	return w.fault
}
