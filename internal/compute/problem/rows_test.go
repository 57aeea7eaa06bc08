package problem

import (
	"fmt"
	"sync"
	"testing"
)

// Each goroutine gets the error of its own row, while others use the memory of rows that failed.
func TestErrorsOfSharedRows(t *testing.T) {
	var all sharing[[]bool]
	var group sync.WaitGroup
	for first := range 4 {
		group.Go(func() {
			var own recent[[]bool]
			for iy := first; iy < 4000; iy += 4 {
				want := fmt.Sprint("row ", iy)
				_, err := own.at(iy, &all, func(int, *[]bool) error { return fmt.Errorf("row %d", iy) })
				if err == nil || err.Error() != want {
					t.Errorf("row %d: error %v, want %s", iy, err, want)
				}
			}
		})
	}
	group.Wait()
}
