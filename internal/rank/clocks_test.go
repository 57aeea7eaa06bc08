package rank

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"jacobi/internal/roster"
	"jacobi/internal/shm"
)

// A rank finds by how much its clock is ahead of rank 0's, within the error that it states.
func TestCompareClock(t *testing.T) {
	teams := teamsOf(t, 2)
	base := time.Now()
	here := func() int64 { return int64(time.Since(base)) }
	for _, shift := range []time.Duration{0, 5 * time.Hour, -time.Minute} {
		var wg sync.WaitGroup
		wg.Go(func() {
			j := &joined{id: teams[0].Self().Identity, team: teams[0]}
			if err := j.tellTime(t.Context(), 1, here); err != nil {
				t.Error(err)
			}
		})
		j := &joined{id: teams[1].Self().Identity, team: teams[1]}
		ahead, bound, err := j.compareClock(t.Context(), func() int64 { return here() + int64(shift) })
		wg.Wait()
		if off := ahead - shift; err != nil || bound <= 0 || off < -bound || off > bound {
			t.Errorf("a clock %v ahead: %v with an error of at most %v, %v", shift, ahead, bound, err)
		}
	}
}

// The first rank under each kernel compares clocks for all ranks there. One whose kernel is not known does it for
// itself.
func TestClockOf(t *testing.T) {
	var members []roster.Member
	for _, boot := range []string{"a", "b", "a", "", "b", "", "c"} {
		members = append(members, roster.Member{Node: shm.Node{Boot: boot}})
	}
	if got, want := clockOf(members), []int{0, 1, 0, 3, 1, 5, 6}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
