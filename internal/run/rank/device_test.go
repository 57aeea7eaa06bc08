package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"jacobi/cuda/driver"
	"jacobi/internal/base/shm"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

// All ranks of a node choose by the readings of its first rank.
func TestNodeReadings(t *testing.T) {
	member := func(rank, local int, node string, readings []device.GPU) roster.Member {
		extra, err := json.Marshal(memberExtra{Readings: readings})
		if err != nil {
			t.Fatal(err)
		}
		return roster.Member{Identity: roster.Identity{Rank: rank, LocalRank: local}, Host: "h",
			Node: shm.Node{Boot: node}, Extra: extra}
	}
	a, b := []device.GPU{{UUID: "GPU-a"}}, []device.GPU{{UUID: "GPU-b"}}
	members := []roster.Member{member(0, 0, "1", a), member(1, 0, "2", b), member(2, 1, "1", b), member(3, 1, "2", nil),
		member(4, 0, "3", nil), member(5, 1, "4", a)}
	for _, test := range []struct {
		policy device.Policy
		self   int
		want   []device.GPU
		err    string
	}{
		{device.RoundRobin, 2, nil, ""},
		{device.Coolest, 0, a, ""},
		{device.Coolest, 2, a, ""},
		{device.Coolest, 3, b, ""},
		{device.Coolest, 4, nil, `device.select "coolest": rank 4, the first on this node, has no readings ` +
			`of its GPUs; allowed here is round-robin`},
		{device.Coolest, 5, nil, `device.select "coolest": no rank on this node has local rank 0`},
	} {
		got, err := nodeReadings(test.policy, members[test.self], roster.GroupsOf(members))
		if !reflect.DeepEqual(got, test.want) || fmt.Sprint(err) != test.err && (err != nil || test.err != "") {
			t.Errorf("%s, rank %d: %v, %v; want %v, %s", test.policy, test.self, got, err, test.want, test.err)
		}
	}
}

// An error of the driver names the GPU; no other error does.
func TestOnGPU(t *testing.T) {
	taken := devices{chosen: &output.GPUReport{Index: 3, Name: "H200", UUID: "GPU-a"}}
	fault := fmt.Errorf("sweep: %w", &driver.Error{})
	if got, want := taken.onGPU(fault), "GPU 3 (H200, GPU-a): "+fault.Error(); got.Error() != want ||
		!errors.Is(got, fault) {
		t.Errorf("%v, want %s", got, want)
	}
	other := errors.New("disk full")
	if got := taken.onGPU(other); got != other {
		t.Errorf("%v, want %v", got, other)
	}
	if got := (devices{}).onGPU(fault); got != fault {
		t.Errorf("on the CPU: %v, want %v", got, fault)
	}
}

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
