package cpu

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"
)

// The copy with stores that bypass the caches copies its pages and writes nothing else.
func TestStreamCopy(t *testing.T) {
	stream := streamCopy()
	if stream == nil {
		t.Skipf("NOT RUN: %s: this processor has no stores past the caches that we use", t.Name())
	}
	var fields [2]memory
	for i := range fields {
		var err error
		if fields[i], err = newMemory(5 * page); err != nil {
			t.Fatal(err)
		}
		defer fields[i].free()
	}
	for i := range fields[1] {
		fields[1][i] = byte(i*7 + i>>8)
	}
	stream(fields[0][page:page], fields[1][page:page])
	stream(fields[0][page:4*page], fields[1][page:4*page])
	want := make([]byte, 5*page)
	copy(want[page:4*page], fields[1][page:4*page])
	if !bytes.Equal(fields[0], want) {
		t.Error("the copy of the middle three of five pages is something else")
	}
}

func TestCopyRate(t *testing.T) {
	for _, c := range []struct{ bytes, threads int }{{1, 3}, {5 * page, 3}, {1 << 20, 2}} {
		rate, err := CopyRate(t.Context(), c.bytes, c.threads)
		if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
			t.Errorf("%d bytes, %d threads: %v, %v", c.bytes, c.threads, rate, err)
		}
	}
	if _, err := CopyRate(t.Context(), 0, 1); err == nil ||
		err.Error() != "copy rate of 0 bytes with 1 threads: both must be at least 1" {
		t.Errorf("0 bytes: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := CopyRate(ctx, 1, 1); !errors.Is(err, cause) {
		t.Errorf("after the end of the context: %v", err)
	}
}
