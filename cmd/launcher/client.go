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

// answer is a line for a client.
type answer struct {
	line []byte
	last bool // of its request
}

// maxProgress is how many answers may wait to be written when an event of progress is added. Others always are: their
// number is that of the requests.
const maxProgress = 64

var errGone = errors.New("the client has gone")

// attend serves the requests that arrive on in. It returns once all are answered, or with an error once nobody reads
// out any more. unread returns when that is so.
func (s *serving) attend(in io.Reader, out io.Writer, unread func()) error {
	defer s.leave(nil)
	go func() {
		unread()
		s.leave(errGone)
	}()
	go func() {
		all := s.read(in)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = all
		notify(s.wake)
	}()
	return s.write(out)
}

// read reads requests until their end, or until no more are taken. A line that is none is answered in its turn.
func (s *serving) read(in io.Reader) (all bool) {
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
			if !s.take(r) {
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
func (s *serving) take(r *request) bool {
	if r.cancel != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if asked := s.asked[string(r.cancel)]; asked != nil {
			asked.drop(errCancelled)
		}
		return true
	}
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		<-s.room
		return false
	}
	if s.asked[string(r.id)] != nil {
		*r = request{fault: fmt.Errorf("no request: id %s: the request with this id has no end yet", r.id)}
	}
	if r.id != nil {
		s.asked[string(r.id)] = r
	}
	r.wanted, r.drop = context.WithCancelCause(s.ctx)
	s.waiting = append(s.waiting, r)
	notify(s.more)
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

// answer adds an event of a request to the answers.
func (s *serving) answer(r *request, e events.Event) {
	line := lineOf(r.id, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || e.Event == "progress" && len(s.answers) >= maxProgress {
		return
	}
	a := answer{line, e.End != nil}
	if s.answers = append(s.answers, a); a.last && r.id != nil {
		delete(s.asked, string(r.id))
	}
	notify(s.wake)
}

// write writes answers until the last one, or until nobody reads them any more.
func (s *serving) write(out io.Writer) error {
	for {
		s.mu.Lock()
		all := s.answers
		s.answers = nil
		done := (s.ended || s.closed) && len(all) == 0 && len(s.room) == 0
		s.mu.Unlock()
		for _, a := range all {
			if _, err := out.Write(a.line); err != nil {
				s.leave(err)
				return err
			}
			if a.last {
				<-s.room
			}
		}
		switch {
		case done:
			return nil
		case len(all) > 0:
			continue
		}
		select {
		case <-s.wake:
		case <-s.over:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
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
