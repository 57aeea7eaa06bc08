package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/view"
)

// A viewer that is interrupted has no more frames: pages that wait for one do not hold up its end.
func TestInterruptedViewerGivesNoMoreFrames(t *testing.T) {
	live := view.NewLive(view.NewBoard())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := follow(ctx, wire.Over(rostertest.Start(t, 0).Dial()), "run", live); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if f, err := live.Frame(ctx, view.Window{X1: 5, Y1: 3, Cols: 5, Rows: 3}, 0); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v, want EOF", f, err)
	}
}
