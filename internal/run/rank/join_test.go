package rank

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/shm"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
)

// A core counts for each rank that may use it by its share.
func TestRanksShareTheCoresThatTheyMayUse(t *testing.T) {
	for _, test := range []struct {
		nodes, cores string // a letter and a digit a rank: the node; the first of two cores, or 9 for all four
		want         []float64
		threads      []int
		perCore      []int
	}{
		{"aa", "99", []float64{2, 2}, []int{2, 2}, []int{1, 1}},
		{"aa", "02", []float64{2, 2}, []int{2, 2}, []int{1, 1}}, // each rank is bound to its own cores
		{"ab", "99", []float64{4, 4}, []int{4, 4}, []int{1, 1}},
		{"aaa", "900", []float64{2.0/3 + 2, 2.0 / 3, 2.0 / 3}, []int{2, 1, 1}, []int{1, 2, 2}},
		{"aaaaaaaa", "99999999", slices.Repeat([]float64{0.5}, 8), slices.Repeat([]int{1}, 8),
			slices.Repeat([]int{2}, 8)},
	} {
		t.Run(fmt.Sprintf("%s %s", test.nodes, test.cores), func(t *testing.T) {
			var members []roster.Member
			for i := range test.nodes {
				var e memberExtra
				for core := range 4 {
					if first := int(test.cores[i] - '0'); first == 9 || core == first || core == first+1 {
						e.Cores.Set(core)
					}
				}
				extra, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				members = append(members, roster.Member{Host: "h", Node: shm.Node{Boot: test.nodes[i : i+1]},
					Extra: extra})
			}
			for i := range members {
				share, err := shareOfCores(members, members[i])
				if err != nil {
					t.Fatal(err)
				}
				if d := share - test.want[i]; math.Abs(d) > 1e-9 {
					t.Errorf("rank %d: %g cores, want %g", i, share, test.want[i])
				}
				if threads, perCore := cpu.ThreadsOn(share), cpu.PerCoreOn(cpu.ThreadsOn(share),
					share); threads != test.threads[i] || perCore != test.perCore[i] {
					t.Errorf("rank %d: %d threads, %d a core, want %d and %d", i, threads, perCore, test.threads[i],
						test.perCore[i])
				}
			}
		})
	}
	if size := len(unix.CPUSet{}) * 64; size != 1024 {
		t.Errorf("a set of cores holds %d, want 1024", size)
	}
}

// What a rank told of its cores is checked on all ranks, also on other nodes.
func TestCoresOfOtherRanksAreChecked(t *testing.T) {
	members := []roster.Member{{Extra: []byte(`{"cores":[]}`)}, {Host: "other", Extra: []byte(`{"cores":1}`)}}
	members[1].Rank = 1
	const want = "rank 1: data of its join: json: cannot unmarshal number into Go struct field memberExtra.cores of " +
		"type unix.CPUSet"
	if _, err := shareOfCores(members, members[0]); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
