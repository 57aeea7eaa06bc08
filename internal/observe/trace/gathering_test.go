package trace

import (
	"reflect"
	"testing"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
)

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
