package traceread

import (
	"os"
	"strings"
	"testing"
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
