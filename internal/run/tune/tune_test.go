package tune

import (
	"testing"

	"jacobi/internal/net/roster"
)

// groupsOf returns the groups of members, by rank.
func groupsOf(t *testing.T, members []roster.Member) []roster.Group {
	t.Helper()
	groups, err := roster.GroupsOf(members)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// The ranks divide the mesh by what all of their devices can do, which they find in their roster.
func TestDepthAndPassesOfAllDevices(t *testing.T) {
	for _, c := range []struct {
		depths []int // that the ranks prefer
		want   int
	}{{[]int{32, 12, 20}, 12}, {[]int{16}, 16}, {[]int{9, 16, 16}, 9}} {
		var members []roster.Member
		for _, depth := range c.depths {
			members = append(members, roster.Member{Role: roster.Role{Depth: depth}})
		}
		if got := preferredDepth(groupsOf(t, members)); got != c.want {
			t.Errorf("%v: %d, want %d", c.depths, got, c.want)
		}
	}
}
