package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"jacobi/internal/observe/events"
)

// request is a line of a client.
type request struct {
	ID       json.RawMessage `json:"id"`
	Keys     json.RawMessage `json:"keys"`
	Hash     bool            `json:"hash"`
	Progress bool            `json:"progress"`
	Cancel   json.RawMessage `json:"cancel"` // the id of a request that is not to be done, or not to its end
	fault    error
	from     *client
	drop     context.CancelCauseFunc // cancels its job; nil before that
}

// answer is a line for a client.
type answer struct {
	ID json.RawMessage `json:"id"`
	events.Event
}

// client asks for runs: the program at standard input and output, or one that is connected to the socket.
type client struct {
	*serving
	failed func(error) error // takes a failure to write: what it returns ends all

	writing sync.Mutex
	out     *json.Encoder

	mu      sync.Mutex
	waiting map[string]int                     // requests without an end, by id
	given   map[string]context.CancelCauseFunc // cancels the newest job, by id
	ended   map[string]bool                    // ids of requests that were cancelled
	gone    bool
}

// newClient returns a client whose end ends all.
func newClient(s *serving, out io.Writer) *client {
	return &client{serving: s, out: json.NewEncoder(out), waiting: map[string]int{},
		given: map[string]context.CancelCauseFunc{}, ended: map[string]bool{},
		failed: func(err error) error { return fmt.Errorf("answer to a request: %w", err) }}
}

// read reads requests until their end. A line that is none is answered in its turn.
func (c *client) read(ctx context.Context, in io.Reader) {
	lines := bufio.NewReaderSize(in, maxRequest)
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		r := request{fault: fmt.Errorf("no request: more than %d bytes", maxRequest)}
		if !long {
			r = parseRequest(line)
		}
		switch {
		case !long && len(bytes.TrimSpace(line)) == 0:
		case r.Cancel != nil && r.fault == nil:
			c.abandon(string(r.Cancel))
		case !c.ask(ctx, r):
			return
		}
		if err != nil {
			return
		}
	}
}

// ask puts a request into the queue, and waits for room there.
func (c *client) ask(ctx context.Context, r request) bool {
	r.from = c
	c.mu.Lock()
	c.waiting[string(r.ID)]++
	c.mu.Unlock()
	select {
	case c.queue <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// parseRequest reads a line. Its fault says why it is no request.
func parseRequest(line []byte) (r request) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	switch id := string(r.ID); {
	case err != nil:
		r.ID, r.fault = nil, fmt.Errorf("no request: %w", err)
	case r.Cancel != nil && r.ID == nil && r.Keys == nil:
	case id == "" || len(id) > maxID || strings.ContainsAny(id[:1], "{[ntf"):
		r.ID, r.fault = nil, fmt.Errorf("no request: id: must be a number, or text of at most %d bytes", maxID)
	case len(r.Keys) == 0:
		r.fault = errors.New("no request: keys: must be an object")
	}
	return r
}

// give notes how to cancel the job of a request. It returns false if the request is not to be done.
func (c *client) give(id string, drop context.CancelCauseFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[id] = drop
	return !c.ended[id] && !c.gone
}

// abandon cancels the requests of that id that have no end. One at which the ranks are stops after a common iteration.
func (c *client) abandon(id string) {
	c.mu.Lock()
	drop := c.given[id]
	if c.waiting[id] > 0 {
		c.ended[id] = true
	}
	c.mu.Unlock()
	if drop != nil {
		drop(errCancelled)
	}
}

// leave cancels all requests: nobody waits for their answers any more.
func (c *client) leave() {
	c.mu.Lock()
	c.gone = true
	var ids []string
	for id := range c.waiting {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.abandon(id)
	}
}

// end forgets a request.
func (c *client) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[id]--; c.waiting[id] <= 0 {
		delete(c.waiting, id)
		delete(c.given, id)
		delete(c.ended, id)
	}
}

// tell writes an event of the request with that id; nil stands for a line that is none.
func (c *client) tell(id json.RawMessage, e events.Event) error {
	e.Time = time.Now()
	if id == nil {
		id = json.RawMessage("null")
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.out.Encode(answer{id, e}); err != nil {
		return c.failed(err)
	}
	return nil
}
