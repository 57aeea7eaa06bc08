package background

import (
	"context"
	"errors"
	"testing"
)

// Wait returns the error of the newest task, once.
func TestWaitReturnsTheErrorOnce(t *testing.T) {
	b := New(t.Context(), "task")
	if err := b.Wait(t.Context()); err != nil {
		t.Errorf("without a task: %v", err)
	}
	want := errors.New("disk full")
	b.Do(func(context.Context) error { return want })
	if err := b.Wait(t.Context()); err != want {
		t.Errorf("%v, want %v", err, want)
	}
	if err := b.Wait(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// A wait that ends early names the task, which goes on and can be waited for again.
func TestWaitThatEnds(t *testing.T) {
	b := New(t.Context(), "series")
	finish := make(chan struct{})
	b.Do(func(context.Context) error { <-finish; return nil })
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("rank 1 is gone")
	cancel(cause)
	if err := b.Wait(ctx); !errors.Is(err, cause) || err.Error() != "series: rank 1 is gone" {
		t.Errorf("%v, want series: %v", err, cause)
	}
	close(finish)
	if err := b.Wait(t.Context()); err != nil {
		t.Errorf("the task: %v", err)
	}
}

// Close ends the context of a task and returns when the task has.
func TestCloseEndsTheTask(t *testing.T) {
	b := New(t.Context(), "film")
	ended := false
	b.Do(func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return ctx.Err()
	})
	if err := b.Close(); err != nil || !ended {
		t.Errorf("%v, ended %t; want the task to have ended", err, ended)
	}
}
