package trace

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"jacobi/internal/observe/trace/traceread"
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
		{Start: 12000, Took: 10, Kind: kindHash},
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
	if err := w.Rank(Process{0, `rank 0 on "<a>"`, [2]int{1, 1}}, above, Clock{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Rank(Process{1, "rank 1 on b", [2]int{0, 0}}, below, far); err != nil {
		t.Fatal(err)
	}
	err := w.Close(About{Program: "p", RunID: "id", Begin: "now", Method: "jacobi", Passes: 5, Dropped: 1,
		Clocks: []NodeClock{{Host: "a", Ranks: []int{0}}, {Host: "b", Ranks: []int{1}, Clock: far}}})
	if err != nil {
		t.Fatal(err)
	}
	return &file
}

const twoRanksText = `{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"process_name","args":{"name":"rank 0 on \"<a>\""}},
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"thread_name","args":{"name":"solver"}},
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"X","pid":1,"tid":11,"ts":1.000,"dur":8.001,"name":"pass","cat":"pass",` +
	`"args":{"pass":4,"first_sweep":32,"sweeps":8}},
{"ph":"X","pid":1,"tid":11,"ts":1.000,"dur":0.500,"name":"edges","cat":"compute",` +
	`"args":{"pass":4,"first_sweep":32,"sweeps":8}},
{"ph":"X","pid":1,"tid":11,"ts":2.000,"dur":7.001,"name":"interior","cat":"compute",` +
	`"args":{"pass":4,"first_sweep":32,"sweeps":8}},
{"ph":"X","pid":1,"tid":11,"ts":11.000,"dur":0.010,"name":"hash","cat":"output","args":{}},
{"ph":"M","pid":1,"tid":12,"ts":0,"name":"thread_name","args":{"name":"link to rank 1 (bottom)"}},
{"ph":"M","pid":1,"tid":12,"ts":0,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":1,"tid":12,"ts":1.500,"dur":0.100,"name":"send","cat":"link","args":{"exchange":5}},
{"ph":"s","pid":1,"tid":12,"ts":1.500,"id":21,"name":"rows","cat":"rows"},
{"ph":"X","pid":1,"tid":12,"ts":1.600,"dur":0.900,"name":"receive","cat":"link","args":{"exchange":5}},
{"ph":"f","bp":"e","pid":1,"tid":12,"ts":2.499,"id":20,"name":"rows","cat":"rows"},
{"ph":"X","pid":1,"tid":12,"ts":2.900,"dur":0.010,"name":"room","cat":"link","args":{"exchange":5}},
{"ph":"X","pid":1,"tid":12,"ts":3.000,"dur":0.100,"name":"send","cat":"link","args":{"exchange":6}},
{"ph":"M","pid":2,"tid":21,"ts":0,"name":"process_name","args":{"name":"rank 1 on b"}},
{"ph":"M","pid":2,"tid":21,"ts":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":2,"tid":20,"ts":0,"name":"thread_name","args":{"name":"link to rank 0 (top)"}},
{"ph":"M","pid":2,"tid":20,"ts":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"X","pid":2,"tid":20,"ts":1.700,"dur":0.300,"name":"send","cat":"link","args":{"exchange":5}},
{"ph":"s","pid":2,"tid":20,"ts":1.700,"id":20,"name":"rows","cat":"rows"},
{"ph":"X","pid":2,"tid":20,"ts":2.100,"dur":0.001,"name":"receive","cat":"link","args":{"exchange":5}},
{"ph":"f","bp":"e","pid":2,"tid":20,"ts":2.100,"id":21,"name":"rows","cat":"rows"}
],
"otherData":{"program":"p","run":"","run_id":"id","begin":"now","method":"jacobi","passes":5,"dropped":1,` +
	`"clocks":[{"host":"a","ranks":[0],"before":{"ahead_ns":0,"error_ns":0},"after":{"ahead_ns":0,"error_ns":0},` +
	`"drifts":false},{"host":"b","ranks":[1],"before":{"ahead_ns":1000000,"error_ns":10},` +
	`"after":{"ahead_ns":1000005,"error_ns":20},"drifts":false}]}}
`

func TestWriterText(t *testing.T) {
	if got := twoRanks(t).String(); got != twoRanksText {
		t.Errorf("got\n%s", got)
	}
}

// A reader finds the ranks, their tracks, what encloses what, and an arrow each way.
func TestWriterIsRead(t *testing.T) {
	got, err := traceread.Read(strings.NewReader(twoRanksText))
	if err != nil {
		t.Fatal(err)
	}
	var depths []int
	for _, s := range got.Ranks[0].Tracks["solver"] {
		depths = append(depths, s.Depth)
	}
	if !reflect.DeepEqual(depths, []int{0, 1, 1, 0}) {
		t.Errorf("depths %v", depths)
	}
	if sums := got.Ranks[0].Sum(); sums["compute"] != 7501 || sums["link"] != 1110 || sums["pass"] != 8001 {
		t.Errorf("sums %v", sums)
	}
	var arrows []string
	for _, a := range got.Arrows {
		if a.From.Name != "send" || a.To.Name != "receive" || a.From.Args["exchange"] != a.To.Args["exchange"] {
			t.Errorf("arrow %+v", a)
		}
		arrows = append(arrows, a.FromTrack+" > "+a.ToTrack)
	}
	if want := []string{"link to rank 1 (bottom) > link to rank 0 (top)",
		"link to rank 0 (top) > link to rank 1 (bottom)"}; !reflect.DeepEqual(arrows, want) {
		t.Errorf("arrows %q, want %q", arrows, want)
	}
	if c := got.About.Clocks[1]; c.Host != "b" || c.Before.Ahead != int64(time.Millisecond) {
		t.Errorf("clock %+v", c)
	}
}

// The reader of the tests refuses what viewers misread.
func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"ts":1.500,"dur":0.100`, `"ts":1.5,"dur":0.100`, "three decimals"},
		{`"ts":1.600,"dur":0.900`, `"ts":1.550,"dur":0.900`, "ends 850ns after the slice that it begins in"},
		{`"ts":3.000`, `"ts":0.000`, "out of order"},
		{`"ts":2.499`, `"ts":2.501`, "not in the slice before it"},
		{`"id":21,"name":"rows","cat":"rows"}` + "\n]", `"id":22,"name":"rows","cat":"rows"}` + "\n]", "has no end"},
		{`"pid":2,"tid":21`, `"pid":0,"tid":21`, "gets none"},
		{`"bp":"e",`, ``, "a key is missing"},
		{`"exchange":6}}`, `"exchange":6},"x":1}`, "unknown field"},
		{`"ph":"s"`, `"ph":"t"`, "unknown ph"},
		{"}}\n", "}}{}\n", "more after the object"},
	} {
		_, err := traceread.Read(strings.NewReader(strings.Replace(twoRanksText, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.new, c.old, err, c.want)
		}
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
	if err := w.Rank(Process{}, part, Clock{}); !errors.Is(err, errFull) {
		t.Errorf("Rank: %v", err)
	}
	if err := NewWriter(full{}, 0, 1).Close(About{}); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
}
