package ballast_test

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"jacobi/internal/base/ballast"
)

// goal returns the size of the heap at which the collector runs next, in bytes.
func goal() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// A process with a small heap is collected before it has 8 MiB, and one with a ballast after Size bytes of garbage.
func TestNew(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	if g := goal(); g >= 8<<20 {
		t.Errorf("the collector runs at %d bytes, want less than %d", g, 8<<20)
	}
	b := ballast.New()
	const least, most = 2 * ballast.Size, 2*ballast.Size + 8<<20
	if g := goal(); g < least || g > most {
		t.Errorf("with a ballast the collector runs at %d bytes, want %d to %d", g, least, most)
	}
	runtime.KeepAlive(b)
}
