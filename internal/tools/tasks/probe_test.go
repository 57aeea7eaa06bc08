package tasks

import (
	"reflect"
	"testing"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
)

// The nodes are in the order of their lowest ranks. A rank whose node is not known is one of its own.
func TestNodesOf(t *testing.T) {
	var members []roster.Member
	for rank, boot := range []string{"a", "b", "a", "", "b", ""} {
		m := roster.Member{Identity: roster.Identity{Rank: rank}, Host: "host", Node: shm.Node{Boot: boot}}
		members = append(members, m)
	}
	if got, want := nodesOf(members), [][]int{{0, 2}, {1, 4}, {3}, {5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
