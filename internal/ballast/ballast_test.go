package ballast_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"jacobi/internal/ballast"
)

var garbage []byte

// collections returns how often the collector runs while n bytes of garbage are made.
func collections(n int) uint32 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n >> 16 {
		garbage = make([]byte, 1<<16)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

// A heap of less than 4 MiB is collected before it has 8 MiB, and one with a ballast before it has four times the
// ballast.
func TestNew(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const bytes = 8 * ballast.Size
	without := collections(bytes)
	b := ballast.New()
	with := collections(bytes)
	runtime.KeepAlive(b)
	if without < bytes/(8<<20) || with > 8 || with < 2 {
		t.Errorf("%d and with a ballast %d collections, want at least %d and 2 to 8", without, with, bytes/(8<<20))
	}
}
