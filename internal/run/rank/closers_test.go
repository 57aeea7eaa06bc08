package rank

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/cuda/driver"
)

// Everything is closed once, newest first, whatever fails; only an error that is news is logged.
func TestClosersCloseTheNewestFirst(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	open := &closers{log: zap.New(core)}
	var order []string
	for _, part := range []struct {
		name string
		err  error
	}{
		{"server", nil},
		{"links", errors.New("links: already closed")},
		{"backend", fmt.Errorf("free: %w", driver.ErrContextLost)},
	} {
		open.add(func() error {
			order = append(order, part.name)
			return part.err
		})
	}
	open.close()
	open.close()
	if want := []string{"backend", "links", "server"}; !slices.Equal(order, want) {
		t.Errorf("closed %q, want %q", order, want)
	}
	var logged []string
	for _, entry := range logs.All() {
		logged = append(logged, fmt.Sprint(entry.Message, ": ", entry.ContextMap()["error"]))
	}
	if want := []string{"close: links: already closed"}; !slices.Equal(logged, want) {
		t.Errorf("logged %q, want %q", logged, want)
	}
}
