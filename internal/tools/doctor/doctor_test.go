package doctor

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"jacobi/internal/observe/output"
	"jacobi/internal/run/agent"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
)

// three is a plan with ranks 0 and 2 on this machine and rank 1 on another.
var three = plan.Plan{Places: hosts.Places{Here: map[string]bool{"a": true},
	Placements: []launch.Placement{{Rank: 0, Host: "a"}, {Rank: 1, Host: "b"}, {Rank: 2, Host: "a"}}}}

func ready(rank, threads int, memory int64, trip float64) examine.Rank {
	return examine.Rank{Rank: rank, Node: examine.Node{Version: "v1", NATSRoundTrip: trip, Files: 10 + rank},
		Report: &output.RankReport{Rank: rank, Threads: threads, MemoryBytes: memory}}
}

// A fault that several checks report counts once, with the first remedy, and each line of an error is a fault.
func TestDiagnosis(t *testing.T) {
	faults := append(faultsOf(errors.New("a\nb"), "first"), faultsOf(errors.New("b\nc"), "second")...)
	d := diagnosis(append(faults, faultsOf(nil, "none")...), nil)
	want := []Finding{{"a", "first"}, {"b", "first"}, {"c", "second"}}
	if !reflect.DeepEqual(d.Faults, want) || d.Starts {
		t.Errorf("faults %v, want %v; starts: %v", d.Faults, want, d.Starts)
	}
	if d := diagnosis(nil, []Finding{{"w", "do"}}); !d.Starts || len(d.Warnings) != 1 {
		t.Errorf("warnings keep a run from starting: %+v", d)
	}
	text, err := json.Marshal(diagnosis(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	var lists struct{ Faults, Warnings, Nodes, Ranks []any }
	if err := json.Unmarshal(text, &lists); err != nil || lists.Faults == nil || lists.Warnings == nil ||
		lists.Nodes == nil || lists.Ranks == nil {
		t.Errorf("a list is null in %s; %v", text, err)
	}
}

// The ranks of a node add up, and the shortest round trip and the most files count.
func TestNodes(t *testing.T) {
	want := []Node{
		{Host: "a", Reached: "this machine", Ranks: []int{0, 2}, Threads: 5, Needed: 300,
			Node: examine.Node{Version: "v1", NATSRoundTrip: 0.25, Files: 12}},
		{Host: "b", Reached: "ssh", Ranks: []int{1}, Threads: 1, Needed: 50,
			Node: examine.Node{Version: "v1", NATSRoundTrip: 1, Files: 11}},
	}
	got := nodes(&three, []examine.Rank{ready(0, 2, 100, 0.5), ready(1, 1, 50, 1), ready(2, 3, 200, 0.25)})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	onAgents := hosts.Places{Agents: []agent.Offer{{Host: "a"}}}
	if got := reachedBy(onAgents, "a"); got != "agent" {
		t.Errorf("reached by %s, want agent", got)
	}
}

// A trial ends with what the ranks report, or else with the first cause of its failure.
func TestConclude(t *testing.T) {
	sent, err := json.Marshal([]examine.Rank{ready(0, 1, 1, 1), ready(1, 1, 1, 1), ready(2, 1, 1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	full := examine.Rank{Rank: 1, Fault: "disk full"}
	failed := &launch.RankError{Rank: 1, Host: "b", Text: "failed: disk full"}
	for _, c := range []struct {
		name      string
		out       launch.Outcome
		published []examine.Rank
		faults    []string
		ranks     int
	}{
		{"all ranks were ready", launch.Outcome{Report: sent}, make([]examine.Rank, 3), nil, 3},
		{"a rank failed, and so did the others", launch.Outcome{Err: failed}, []examine.Rank{
			{Rank: 0, Fault: "rank 1 failed", Consequence: true}, full, {Rank: 2, Fault: "disk full"},
		}, []string{"rank 1 on b: disk full"}, 0},
		{"a rank died", launch.Outcome{Err: failed}, []examine.Rank{ready(0, 1, 1, 1), {}, {}},
			[]string{"rank 1 on b failed: disk full (last known sweep: none)"}, 1},
		{"a rank that the run does not have", launch.Outcome{Err: failed}, []examine.Rank{full,
			{Rank: 3, Fault: "x"}, {Rank: -1, Fault: "y"}}, []string{"rank 1 on b: disk full"}, 0},
	} {
		f, err := conclude(&three, c.out, c.published)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var faults []string
		for _, f := range f.faults {
			faults = append(faults, f.What)
		}
		if !reflect.DeepEqual(faults, c.faults) || len(f.ranks) != c.ranks {
			t.Errorf("%s: faults %q, %d ranks; want %q, %d", c.name, faults, len(f.ranks), c.faults, c.ranks)
		}
	}
	if _, err := conclude(&three, launch.Outcome{}, nil); err == nil {
		t.Error("a lost report passes for a good one")
	}
}

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
