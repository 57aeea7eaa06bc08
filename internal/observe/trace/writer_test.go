package trace

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"testing"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// twoRanks writes a trace of two ranks, the second of which runs on a node whose clock is 1 ms ahead.
func twoRanks(t *testing.T) *bytes.Buffer {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, 1000, 2)
	var above, below Part
	above.tracks[trackSolver] = []record{
		{Start: 2000, Took: 500, Number: 4, First: 32, Sweeps: 8, Kind: kind(solver.StepEdges)},
		{Start: 3000, Took: 7001, Number: 4, First: 32, Sweeps: 8, Kind: kind(solver.StepInterior)},
		{Start: 2000, Took: 8001, Number: 4, First: 32, Sweeps: 8, Kind: kindPass},
		{Start: 12000, Took: 10, Kind: PhaseHash},
	}
	above.tracks[trackBottom] = []record{
		{Start: 2500, Took: 100, Number: 5, Kind: kindSend}, {Start: 2600, Took: 900, Number: 5, Kind: kindReceive},
		{Start: 3900, Took: 10, Number: 5, Kind: kindRoom},
		{Start: 4000, Took: 100, Number: 6, Kind: kindSend}, // its receive was dropped
	}
	below.tracks[trackTop] = []record{
		{Start: 1002700, Took: 300, Number: 5, Kind: kindSend}, {Start: 1003100, Took: 1, Number: 5, Kind: kindReceive},
	}
	far := Clock{Before: Reading{Ahead: 1000000, Error: 10}, After: Reading{Ahead: 1000005, Error: 20}}
	must(t, w.Rank(0, Name{`"<a>"`, "x"}, above, Clock{}))
	must(t, w.Rank(1, Name{"b", "y"}, below, far))
	err := w.Close(About{Program: "p", RunID: "id", Begin: "now", Method: "jacobi", Passes: 5, Dropped: 1,
		Clocks: []NodeClock{{Host: "a", Ranks: []int{0}}, {Host: "b", Ranks: []int{1}, Clock: far}}})
	must(t, err)
	return &file
}

func TestWriterText(t *testing.T) {
	want, err := os.ReadFile("testdata/two_ranks.json") // which the end-to-end tests read
	if got := twoRanks(t).String(); err != nil || got != string(want) {
		t.Errorf("%v, got\n%s", err, got)
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// An error of the disk is not lost, whenever it comes.
func TestWriterErrors(t *testing.T) {
	w := NewWriter(full{}, 0, 1)
	part := Part{}
	part.tracks[trackSolver] = make([]record, 20000)
	if err := w.Rank(0, Name{}, part, Clock{}); !errors.Is(err, errFull) {
		t.Errorf("Rank: %v", err)
	}
	if err := NewWriter(full{}, 0, 1).Close(About{}); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
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
