package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoRanks is a trace in which rank 0 sends rows to rank 1.
const twoRanks = `{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"process_name","args":{"name":"rank 0 on <a>"}},
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"tid":11,"ts":0,"name":"thread_name","args":{"name":"solver"}},
{"ph":"X","pid":1,"tid":11,"ts":100.000,"dur":300.000,"name":"pass","cat":"pass","args":{"pass":7}},
{"ph":"X","pid":1,"tid":11,"ts":100.000,"dur":200.000,"name":"edges","cat":"compute","args":{}},
{"ph":"M","pid":1,"tid":12,"ts":0,"name":"thread_name","args":{"name":"link to rank 1 (bottom)"}},
{"ph":"X","pid":1,"tid":12,"ts":300.000,"dur":50.000,"name":"send","cat":"link","args":{"exchange":5}},
{"ph":"s","pid":1,"tid":12,"ts":300.000,"id":1,"name":"rows","cat":"rows"},
{"ph":"M","pid":2,"tid":21,"ts":0,"name":"process_name","args":{"name":"rank 1 on b"}},
{"ph":"M","pid":2,"tid":21,"ts":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":2,"tid":20,"ts":0,"name":"thread_name","args":{"name":"link to rank 0 (top)"}},
{"ph":"X","pid":2,"tid":20,"ts":200.000,"dur":120.000,"name":"receive","cat":"link","args":{"exchange":5}},
{"ph":"f","bp":"e","pid":2,"tid":20,"ts":319.999,"id":1,"name":"rows","cat":"rows"}
],
"otherData":{"program":"p","run":"","run_id":"id","begin":"now","method":"jacobi","passes":8,"dropped":0,"clocks":[]}}
`

// elements counts the elements of a document by name and returns its text.
func elements(t *testing.T, svg []byte) (count map[string]int, text string) {
	t.Helper()
	count = map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, text
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			count[e.Name.Local]++
		case xml.CharData:
			text += string(e) + "|"
		}
	}
}

// A picture has the slices and arrows of its time, and a legend of what it shows.
func TestDraw(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(file, []byte(twoRanks), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, until           string
		rects, circles, ticks int
		text, not             string
	}{
		// A background, a colour for each category, and the slices.
		{"50us", "450us", 1 + 2 + 4, 1, 9, "pass 7|", "halo_wait"},
		{"50us", "310us", 1 + 2 + 4, 0, 6, "edges|", "norm_wait"},
		{"360us", "450us", 1 + 0 + 1, 0, 10, "rank 0 on <a>|", "compute"},
	} {
		var svg bytes.Buffer
		if err := run([]string{file, c.from, c.until}, &svg); err != nil {
			t.Fatal(err)
		}
		count, text := elements(t, svg.Bytes())
		ticks := count["path"] - c.circles - 1 // the legend has a path, too
		if count["rect"] != c.rects || count["circle"] != c.circles || ticks != c.ticks ||
			!strings.Contains(text, c.text) || strings.Contains(text, c.not) {
			t.Errorf("%s to %s: %v, %q; want %+v", c.from, c.until, count, text, c)
		}
	}
}

func TestRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(file, []byte(`{"displayTimeUnit":"ns"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "a file, a beginning and an end are wanted, such as trace.json 200ms 450ms"},
		{[]string{file, "x", "2s"}, `time: invalid duration "x"`},
		{[]string{file, "1s", "1s"}, "1s is not after 1s"},
		{[]string{file + "?", "1s", "2s"}, "open " + file + "?: no such file or directory"},
		{[]string{file, "1s", "2s"}, file + ": no events"},
	} {
		if err := run(c.args, io.Discard); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
}
