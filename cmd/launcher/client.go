package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/observe/events"
)

// client asks for runs: the program at standard input and output.
type client struct {
	*serving
	ctx   context.Context // ends with the cause when nobody reads the answers any more, and its requests with it
	leave context.CancelCauseFunc
	room  chan struct{} // holds an element for each request whose end was not written
	wake  chan struct{} // holds a token for the writer

	// Guarded by serving.mu:
	asked   map[string]*request // without an end, by id
	answers []answer            // to be written
	ended   bool                // all requests were taken
}

// answer is a line for a client.
type answer struct {
	line []byte
	last bool // of its request
}

// maxProgress is how many answers may wait to be written when an event of progress is added. Others always are: their
// number is that of the requests.
const maxProgress = 64

var errGone = errors.New("the client has gone")

// attend does the requests that a client writes to in. It returns once all are answered, or with an error once nobody
// reads out any more. unread returns when that is so.
func (s *serving) attend(ctx context.Context, in io.Reader, out io.Writer, unread func()) error {
	c := &client{serving: s, room: make(chan struct{}, s.room), wake: make(chan struct{}, 1),
		asked: map[string]*request{}}
	c.ctx, c.leave = context.WithCancelCause(ctx)
	defer c.leave(nil)
	go func() {
		unread()
		c.leave(errGone)
	}()
	go func() {
		all := c.read(in)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = all
		notify(c.wake)
	}()
	return c.write(out)
}

// read reads requests until their end, or until no more are taken. A line that is none is answered in its turn.
func (c *client) read(in io.Reader) (all bool) {
	lines := bufio.NewReaderSize(in, maxRequest)
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if long {
			line = nil
		}
		if long || len(bytes.TrimSpace(line)) > 0 {
			r := &request{fault: fmt.Errorf("no request: more than %d bytes", maxRequest)}
			if !long {
				r = parseRequest(bytes.TrimRight(line, "\r\n"))
			}
			if !c.take(r) {
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// take does what a line asks for. It waits while there is no room for a request, and returns false if none is taken any
// more.
func (c *client) take(r *request) bool {
	if r.cancel != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if asked := c.asked[string(r.cancel)]; asked != nil {
			asked.drop(errCancelled)
		}
		return true
	}
	select {
	case c.room <- struct{}{}:
	case <-c.ctx.Done():
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		<-c.room
		return false
	}
	if c.asked[string(r.id)] != nil {
		*r = request{fault: fmt.Errorf("no request: id %s: the request with this id has no end yet", r.id)}
	}
	if r.id != nil {
		c.asked[string(r.id)] = r
	}
	r.from = c
	r.wanted, r.drop = context.WithCancelCause(c.ctx)
	c.waiting = append(c.waiting, r)
	notify(c.more)
	return true
}

// lineOf returns the line of an event of the request with that id; nil stands for a line that is none.
func lineOf(id json.RawMessage, e events.Event) []byte {
	e.Time = time.Now()
	line, err := json.Marshal(struct {
		ID json.RawMessage `json:"id"`
		events.Event
	}{id, e})
	if err != nil {
		panic(err) // an event is made of parts that JSON has
	}
	return append(line, '\n')
}

// tell adds an event of a request to the answers.
func (c *client) tell(r *request, e events.Event) {
	line := lineOf(r.id, e)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil || e.Event == "progress" && len(c.answers) >= maxProgress {
		return
	}
	a := answer{line, e.End != nil}
	if c.answers = append(c.answers, a); a.last && r.id != nil {
		delete(c.asked, string(r.id))
	}
	notify(c.wake)
}

// write writes answers until the last one, or until nobody reads them any more.
func (c *client) write(out io.Writer) error {
	for {
		c.mu.Lock()
		all := c.answers
		c.answers = nil
		done := (c.ended || c.closed) && len(all) == 0 && len(c.room) == 0
		c.mu.Unlock()
		for _, a := range all {
			if _, err := out.Write(a.line); err != nil {
				c.leave(err)
				return err
			}
			if a.last {
				<-c.room
			}
		}
		switch {
		case done:
			return nil
		case len(all) > 0:
			continue
		}
		select {
		case <-c.wake:
		case <-c.over:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

// notify puts a token into a channel that holds one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// request is a line of a client: a run to do, or one to cancel.
type request struct {
	id             json.RawMessage // nil if the line has none that can be answered
	keys           map[string]any
	hash, progress bool
	cancel         json.RawMessage // the id of a request that is not to be done, or not to its end
	fault          error           // why the line is no request

	from   *client
	wanted context.Context // of the job; drop ends it
	drop   context.CancelCauseFunc
}

// parseRequest reads a line. Its fault says why it is no request.
func parseRequest(line []byte) *request {
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(line, &raw) // DecodeLine says what is wrong
	r := &request{id: idOf(raw["id"])}
	fields, err := configs.DecodeLine(line)
	if err == nil {
		err = r.set(fields, raw["cancel"])
	}
	if err != nil {
		r.fault, r.cancel = fmt.Errorf("no request: %w", err), nil
	}
	return r
}

// set sets the fields of a request. cancel is that field as it was written.
func (r *request) set(fields map[string]any, cancel json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		ok := true
		switch value := fields[name]; name {
		case "id", "cancel":
		case "keys":
			if r.keys, ok = value.(map[string]any); !ok {
				return errors.New("keys: must be an object")
			}
		case "hash":
			r.hash, ok = value.(bool)
		case "progress":
			r.progress, ok = value.(bool)
		default:
			return fmt.Errorf("%s: the fields are id, keys, hash and progress, or cancel alone", show.Text(name))
		}
		if !ok {
			return fmt.Errorf("%s: must be true or false", name)
		}
	}
	switch {
	case cancel != nil && len(fields) > 1:
		return errors.New("cancel: stands alone, without other fields")
	case cancel != nil:
		if r.cancel = idOf(cancel); r.cancel == nil {
			return fmt.Errorf("cancel: must be the id of a request, %s", isID)
		}
	case r.id == nil:
		return fmt.Errorf("id: must be %s", isID)
	case r.keys == nil:
		return errors.New("keys: must be an object")
	}
	return nil
}

const isID = "a number, or text of at most 200 bytes"

// idOf returns the id that a field holds, in one spelling, and nil if it holds none.
func idOf(field json.RawMessage) json.RawMessage {
	const quotes = 2
	if len(field) == 0 || len(field) > maxID+quotes || strings.ContainsAny(string(field[:1]), "{[ntf") ||
		!utf8.Valid(field) {
		return nil
	}
	var text string
	if json.Unmarshal(field, &text) != nil {
		return field // a number
	}
	again, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return again
}
