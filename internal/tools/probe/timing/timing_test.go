package timing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The first run does not count, and the shortest of the others does.
func TestFastest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := []time.Duration{1, 5, 3, 4}
		took, err := Fastest(t.Context(), 3, func() {
			time.Sleep(runs[0] * time.Second)
			runs = runs[1:]
		})
		if took != 3 || err != nil || len(runs) != 0 {
			t.Errorf("%v s, %v, %d runs left; want 3 s and none", took, err, len(runs))
		}
	})
}

func TestFastestEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("told to stop")
	runs := 0
	if _, err := Fastest(ctx, 3, func() { runs++; cancel(want) }); err != want || runs != 1 {
		t.Errorf("%v after %d runs, want %v after 1", err, runs, want)
	}
}
