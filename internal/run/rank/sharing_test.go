package rank

import (
	"slices"
	"testing"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
)

// Each GPU that several ranks use is named once. The CPU is none.
func TestTakenTwice(t *testing.T) {
	for _, test := range []struct {
		uuids []string // by rank; "" for the CPU
		want  []string
	}{
		{[]string{"", "A", "", "B"}, []string{}},
		{[]string{"A", "B", "A", "B", "A", "C"}, []string{"A", "B"}},
	} {
		if got := takenTwice(test.uuids); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.uuids, got, test.want)
		}
	}
}

// Ranks share GPUs if their node has fewer of them than ranks that use one.
func TestSharingCountsByNode(t *testing.T) {
	member := func(host, node string) roster.Member { return roster.Member{Host: host, Node: shm.Node{Boot: node}} }
	members := []roster.Member{member("a", "1"), member("b", ""), member("a", "1"), member("b", ""), member("a", "1"),
		member("a", "2")}
	for _, test := range []struct {
		uuids []string // by rank; "" for the CPU
		want  []string
	}{
		{[]string{"", "", "", "", "", ""}, nil},
		{[]string{"A", "A", "B", "B", "C", "A"}, nil}, // the same UUID on node b is another GPU
		{[]string{"A", "B", "A", "B", "C", "A"}, []string{"3 ranks share 2 GPUs on a", "2 ranks share 1 GPU on b"}},
		{[]string{"A", "", "A", "B", "", "A"}, []string{"2 ranks share 1 GPU on a"}},
	} {
		if got := sharing(members, test.uuids); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.uuids, got, test.want)
		}
	}
}
