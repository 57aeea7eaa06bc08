package doctor

import (
	"slices"
	"testing"

	"jacobi/internal/observe/output"
	"jacobi/internal/tools/examine"
)

// The doctor warns of clocks that certainly differ by more than a second, of more threads than cores, and of a GPU that
// two ranks use. The two may seem to be on different nodes if they run in containers of one machine.
func TestDoctorWarns(t *testing.T) {
	gpu := func(rank int, uuid string) examine.Rank {
		return examine.Rank{Rank: rank, Report: &output.RankReport{Rank: rank, GPU: &output.GPUReport{UUID: uuid}}}
	}
	node := func(host string, cores, threads int, ahead float64) Node {
		return Node{Host: host, Ranks: []int{0}, Threads: threads,
			Node: examine.Node{Cores: cores, Clock: &examine.Clock{Ahead: ahead, Error: 0.25}}}
	}
	warnings := weigh(
		[]Node{node("a", 4, 4, 1.2), node("b", 4, 5, -1.5), node("c", 1, 1, 90)},
		[]examine.Rank{gpu(0, "GPU-x"), gpu(1, "GPU-y"), gpu(2, "GPU-x"), gpu(3, ""), gpu(4, ""), {Rank: 5}})
	var got []string
	for _, w := range warnings {
		got = append(got, w.What)
	}
	want := []string{
		"b: 5 threads of rank 0 share 4 cores",
		"b: its clock is 1.5s behind that of rank 0, give or take 250ms",
		"c: its clock is 1m30s ahead of that of rank 0, give or take 250ms",
		"ranks 0, 2 share one GPU, GPU-x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
