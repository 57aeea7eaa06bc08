package parallel

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// Every number has its turn once, however many there are.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		counts := make([]atomic.Int32, n)
		if err := Each(n, func(i int) error { counts[i].Add(1); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range counts {
			if c := counts[i].Load(); c != 1 {
				t.Errorf("%d of %d: %d turns", i, n, c)
			}
		}
	}
}

// The error is that of the lowest number that fails, also if a higher one fails first. No number below it is left out.
func TestEachReturnsTheLowestError(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for range 100 {
		var done [100]atomic.Bool
		higher := make(chan struct{})
		err := Each(len(done), func(i int) error {
			done[i].Store(true)
			switch i {
			case 20:
				<-higher
				return fmt.Errorf("number %d", i)
			case 50: // another core has it
				defer close(higher)
				return fmt.Errorf("number %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "number 20" {
			t.Fatalf("error %v, want number 20", err)
		}
		for i := range 20 {
			if !done[i].Load() {
				t.Fatalf("number %d was left out", i)
			}
		}
	}
}
