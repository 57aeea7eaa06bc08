package view

import (
	"context"
	"slices"
	"testing"
)

// The page of a run that has ended waits for a first browser, and for no other one.
func TestLingerWaitsForTheFirstPage(t *testing.T) {
	s, _ := serve(t, none{})
	var said []string
	s.Linger(t.Context(), func(text string) {
		said = append(said, text)
		dial(t, s)
	})
	s.Linger(t.Context(), func(text string) { said = append(said, text) })
	want := []string{"waiting up to 5s for a browser at the view; Ctrl-C ends that"}
	select {
	case <-s.seen:
	default:
		t.Error("the wait is over, and no page was opened")
	}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// The wait ends with its context.
func TestLingerEnds(t *testing.T) {
	s, _ := serve(t, none{})
	ctx, cancel := context.WithCancel(t.Context())
	s.Linger(ctx, func(string) { cancel() })
	select {
	case <-s.seen:
		t.Error("a page was opened")
	default:
	}
}
