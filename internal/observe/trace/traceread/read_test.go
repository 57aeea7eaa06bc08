package traceread

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// twoRanks returns the trace that the test of the writer writes.
func twoRanks(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../testdata/two_ranks.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A reader finds the ranks, their tracks, what encloses what, and an arrow each way.
func TestWriterIsRead(t *testing.T) {
	got, err := Read(strings.NewReader(twoRanks(t)))
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
		_, err := Read(strings.NewReader(strings.Replace(twoRanks(t), c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.new, c.old, err, c.want)
		}
	}
}
