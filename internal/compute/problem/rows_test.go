package problem

import (
	"fmt"
	"sync"
	"testing"

	"jacobi/configs"
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

// Rows that find no place when they are given back are given up, and leave no shared row behind.
func TestRowsWithoutAPlace(t *testing.T) {
	p := open(t, config(33, 33, "float64", configs.Problem{Coefficient: "1+x*y"}))
	var taken []*rows
	for i := range len(p.idle.places) + 2 {
		r := p.take(i)
		if _, err := r.material(5); err != nil {
			t.Fatal(err)
		}
		taken = append(taken, r)
	}
	shared := p.idle.grounds.shard(5).rows[5]
	if want := len(taken); shared.users != want {
		t.Errorf("%d users of a row, want %d", shared.users, want)
	}
	for _, r := range taken {
		p.give(r)
	}
	if want := len(p.idle.places); shared.users != want || p.idle.made.Load() != int64(want) {
		t.Errorf("%d users of a row, and %d rows made, want %d", shared.users, p.idle.made.Load(), want)
	}
}
