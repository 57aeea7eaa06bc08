package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/internal/net/roster"
)

// paths returns the keys of t below prefix, as docs/outputs.md writes them.
func paths(t reflect.Type, prefix string) (all []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]() {
		return paths(t.Elem(), strings.TrimSuffix(prefix, ".")+"[].")
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, paths(f.Type, prefix)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(append(all, prefix+name), paths(f.Type, prefix+name+".")...)
	}
	return all
}

// docs/outputs.md lists exactly the keys of an event: a row for each object, with the names of its members.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/outputs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n| object | members |\n|---|---|\n| each line |")
	section, _, _ = strings.Cut("| `` |"+section, "\n\n")
	name := regexp.MustCompile("`([a-z_.\\[\\]]*)`")
	var listed []string
	for row := range strings.SplitSeq(section, "\n") {
		cells := name.FindAllStringSubmatch(row, -1)
		for _, m := range cells[1:] {
			listed = append(listed, strings.TrimPrefix(cells[0][1]+"."+m[1], "."))
		}
	}
	want := paths(reflect.TypeFor[Event](), "")
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("docs/outputs.md lists\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(section, fmt.Sprintf("| `plan` | `schema`: %d;", Schema)) {
		t.Errorf("docs/outputs.md does not have schema %d", Schema)
	}
}

// Numbers that JSON cannot hold are absent, and so is an estimate that is not there.
func TestProgressOf(t *testing.T) {
	for want, e := range map[string]roster.Event{
		`{"step":"sweep","iterations":7,"max_iterations":9,"elapsed_seconds":0}`: {Sweeps: 7, MaxSweeps: 9,
			Norm: roster.Number(math.NaN()), GLUPs: roster.Number(math.Inf(1))},
		`{"step":"cycle","iterations":7,"max_iterations":9,"expected_iterations":8,"left_seconds":0.5,` +
			`"elapsed_seconds":2,"norm":0.25,"glups":3}`: {Step: "cycle", Sweeps: 7, MaxSweeps: 9, End: 8,
			Left: time.Second / 2, Elapsed: 2 * time.Second, Norm: 0.25, GLUPs: 3},
	} {
		if got, err := json.Marshal(ProgressOf(e)); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

// slow is a reader that takes lines only when it is told to.
type slow struct {
	bytes.Buffer
	began chan struct{}
	take  chan struct{}
}

func (s *slow) Write(line []byte) (int, error) {
	select {
	case s.began <- struct{}{}:
	default:
	}
	<-s.take
	return s.Buffer.Write(line)
}

// A slow reader holds up nobody. It misses progress and statistics, and nothing else.
func TestSlowReader(t *testing.T) {
	s := &slow{began: make(chan struct{}, 1), take: make(chan struct{})}
	w := NewWriter(s)
	w.Write(Event{Event: "plan", Plan: &Plan{}})
	<-s.began // the first line is being written
	for i := range 2 * maxQueue {
		w.Write(Event{Event: "progress", Progress: &Progress{Iterations: i}})
	}
	w.Write(Event{Event: "stats", Stats: &Stats{}})
	w.Write(Event{Event: "end", End: &End{}})
	close(s.take)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	w.Write(Event{Event: "end"}) // after Close: nothing
	count := map[string]int{}
	var last Event
	for line := range bytes.Lines(s.Bytes()) {
		last = Event{}
		if err := json.Unmarshal(line, &last); err != nil || last.Time.IsZero() {
			t.Errorf("%s: %v", line, err)
		}
		count[last.Event]++
	}
	if want := map[string]int{"plan": 1, "progress": maxQueue, "end": 1}; !reflect.DeepEqual(count, want) ||
		last.Event != "end" {
		t.Errorf("%v and %s at last, want %v", count, last.Event, want)
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("nobody reads")
}

// A reader that has left gets nothing more, and Close says so.
func TestReaderLeaves(t *testing.T) {
	b := &broken{}
	w := NewWriter(b)
	for range 5 {
		w.Write(Event{Event: "end", End: &End{}})
	}
	if err := w.Close(); err == nil || err.Error() != "nobody reads" || b.writes != 1 {
		t.Errorf("%v after %d writes", err, b.writes)
	}
	var none *Writer
	none.Write(Event{})
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}
