package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"jacobi/configs"
	"jacobi/internal/base/show"
)

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
