package events

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

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
