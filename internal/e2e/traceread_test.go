package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jacobi/internal/observe/trace"
)

// viewedTrace is a trace as a viewer sees it.
type viewedTrace struct {
	About  trace.About
	Ranks  []tracedRank
	Arrows []tracedArrow
}

// tracedRank is a process.
type tracedRank struct {
	Name   string
	Tracks map[string][]tracedSlice // by the name of the thread, from the first to the last
}

// tracedSlice is a complete event. Times are since ts 0.
type tracedSlice struct {
	Name, Category string
	Start, Took    time.Duration
	Depth          int // slices of the track that enclose it
	Args           map[string]int64
}

// tracedArrow is a flow from the rank and track of a send to those of a receive.
type tracedArrow struct {
	FromRank, ToRank   int
	FromTrack, ToTrack string
	From, To           tracedSlice
}

// Sum adds up the times of a rank's slices by category.
func (r tracedRank) Sum() map[string]time.Duration {
	sums := map[string]time.Duration{}
	for _, slices := range r.Tracks {
		for _, s := range slices {
			sums[s.Category] += s.Took
		}
	}
	return sums
}

// traceEvent is any event; traceKeys says which keys it has.
type traceEvent struct {
	Phase    string          `json:"ph"`
	PID      int             `json:"pid"`
	TID      int             `json:"tid"`
	Time     json.Number     `json:"ts"`
	Duration json.Number     `json:"dur"`
	Name     string          `json:"name"`
	Category string          `json:"cat"`
	Args     json.RawMessage `json:"args"`
	ID       uint64          `json:"id"`
	Binds    string          `json:"bp"`
}

// traceKeys are those of events, by ph: of metadata, a slice, and the beginning and the end of an arrow.
var traceKeys = map[string][]string{
	"M": {"args", "name", "ph", "pid", "tid", "ts"},
	"X": {"args", "cat", "dur", "name", "ph", "pid", "tid", "ts"},
	"s": {"cat", "id", "name", "ph", "pid", "tid", "ts"},
	"f": {"bp", "cat", "id", "name", "ph", "pid", "tid", "ts"},
}

// traceFile is the object of the Trace Event Format.
type traceFile struct {
	Unit   string            `json:"displayTimeUnit"`
	Events []json.RawMessage `json:"traceEvents"`
	Other  trace.About       `json:"otherData"`
}

// parseTrace reads a trace. It refuses what the Trace Event Format or its viewers do not allow, and whatever a trace of
// this program does not have. Its errors name the event.
func parseTrace(r io.Reader) (viewedTrace, error) {
	var f traceFile
	if err := strictly(r, &f); err != nil {
		return viewedTrace{}, err
	}
	if f.Unit != "ns" { // viewers take shorter slices for parts of those before them
		return viewedTrace{}, fmt.Errorf("displayTimeUnit %q", f.Unit)
	}
	if len(f.Events) == 0 {
		return viewedTrace{}, errors.New("no events")
	}
	b := &traceBuilder{threads: map[int]*traceThread{}, starts: map[uint64]arrowEnd{}, ends: map[uint64]arrowEnd{}}
	for i, text := range f.Events {
		if err := b.add(text); err != nil {
			return viewedTrace{}, fmt.Errorf("event %d, %s: %w", i, text, err)
		}
	}
	t := viewedTrace{About: f.Other}
	return t, b.finish(&t)
}

// strictly decodes JSON that has all and only the keys of v.
func strictly(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more after the object: %v", err)
	}
	return nil
}

type traceThread struct {
	rank   int
	name   string
	slices []tracedSlice
	open   []time.Duration // ends of the slices that enclose the newest one, and its own
}

// arrowEnd is one end of an arrow.
type arrowEnd struct {
	thread *traceThread
	slice  int
}

type traceBuilder struct {
	names        []string // of ranks
	threads      map[int]*traceThread
	starts, ends map[uint64]arrowEnd
}

func (b *traceBuilder) add(text []byte) error {
	var e traceEvent
	var has map[string]json.RawMessage
	if err := errors.Join(strictly(bytes.NewReader(text), &e), json.Unmarshal(text, &has)); err != nil {
		return err
	}
	wanted, known := traceKeys[e.Phase]
	switch {
	case !known:
		return errors.New("unknown ph")
	case !slices.Equal(slices.Sorted(maps.Keys(has)), wanted):
		return errors.New("a key is missing or too many")
	case e.Phase == "M":
		return b.meta(e)
	case e.Phase == "X":
		return b.slice(e)
	case e.Phase == "s":
		return b.arrow(e, b.starts)
	}
	return b.arrow(e, b.ends)
}

// meta takes the name or the place of a process or a thread.
func (b *traceBuilder) meta(e traceEvent) error {
	var args struct {
		Name *string `json:"name"`
		Sort *int    `json:"sort_index"`
	}
	if err := strictly(bytes.NewReader(e.Args), &args); err != nil {
		return err
	}
	t := b.threads[e.TID]
	switch known := e.PID >= 1 && e.PID <= len(b.names); e.Name {
	case "process_name":
		if e.PID != len(b.names)+1 || args.Name == nil || args.Sort != nil {
			return errors.New("the process is not the next rank, or gets none")
		}
		b.names = append(b.names, *args.Name)
	case "process_sort_index":
		if !known || args.Sort == nil || *args.Sort != e.PID-1 {
			return errors.New("processes are sorted by rank")
		}
	case "thread_name":
		if !known || t != nil || args.Name == nil {
			return errors.New("the thread has a name, or gets none")
		}
		b.threads[e.TID] = &traceThread{rank: e.PID - 1, name: *args.Name}
	case "thread_sort_index":
		if t == nil || args.Sort == nil {
			return errors.New("no thread, or no index")
		}
	default:
		return errors.New("unknown metadata")
	}
	return nil
}

var traceTime = regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`)

// traceTimeOf returns a number of microseconds with three decimals.
func traceTimeOf(n json.Number) (time.Duration, error) {
	if !traceTime.MatchString(n.String()) {
		return 0, fmt.Errorf("%q: must be microseconds with three decimals", n)
	}
	ns, err := strconv.ParseInt(strings.Replace(n.String(), ".", "", 1), 10, 64)
	return time.Duration(ns), err
}

// threadOf returns the thread of an event.
func (b *traceBuilder) threadOf(e traceEvent) (*traceThread, error) {
	t := b.threads[e.TID]
	if t == nil || t.rank != e.PID-1 {
		return nil, errors.New("a thread without a name, or of another process")
	}
	return t, nil
}

// slice takes a complete event. Slices of a thread come in order, and nest.
func (b *traceBuilder) slice(e traceEvent) error {
	t, err := b.threadOf(e)
	if err != nil {
		return err
	}
	s := tracedSlice{Name: e.Name, Category: e.Category}
	if s.Start, err = traceTimeOf(e.Time); err != nil {
		return err
	}
	if s.Took, err = traceTimeOf(e.Duration); err != nil {
		return err
	}
	if err := json.Unmarshal(e.Args, &s.Args); err != nil {
		return err
	}
	if n := len(t.slices); n > 0 && s.Start < t.slices[n-1].Start {
		return errors.New("out of order")
	}
	for len(t.open) > 0 && t.open[len(t.open)-1] <= s.Start {
		t.open = t.open[:len(t.open)-1]
	}
	if n := len(t.open); n > 0 && s.Start+s.Took > t.open[n-1] {
		return fmt.Errorf("ends %v after the slice that it begins in", s.Start+s.Took-t.open[n-1])
	}
	s.Depth = len(t.open)
	t.open = append(t.open, s.Start+s.Took)
	t.slices = append(t.slices, s)
	return nil
}

// arrow takes an end of an arrow, which lies in the newest slice of its thread.
func (b *traceBuilder) arrow(e traceEvent, ends map[uint64]arrowEnd) error {
	t, err := b.threadOf(e)
	if err != nil {
		return err
	}
	at, err := traceTimeOf(e.Time)
	if err != nil {
		return err
	}
	n := len(t.slices) - 1
	if n < 0 || at < t.slices[n].Start || at > t.slices[n].Start+t.slices[n].Took {
		return errors.New("not in the slice before it")
	}
	_, twice := ends[e.ID]
	if twice || e.Name != "rows" || e.Category != "rows" || e.Phase == "f" && e.Binds != "e" {
		return errors.New("a second arrow of that id, or another name")
	}
	ends[e.ID] = arrowEnd{t, n}
	return nil
}

// finish pairs the ends of arrows and sorts what was read.
func (b *traceBuilder) finish(t *viewedTrace) error {
	for _, name := range b.names {
		t.Ranks = append(t.Ranks, tracedRank{Name: name, Tracks: map[string][]tracedSlice{}})
	}
	for _, th := range b.threads {
		tracks := t.Ranks[th.rank].Tracks
		if _, twice := tracks[th.name]; twice {
			return fmt.Errorf("rank %d has two threads %q", th.rank, th.name)
		}
		tracks[th.name] = th.slices
	}
	if len(b.starts) != len(b.ends) {
		return fmt.Errorf("%d arrows begin and %d end", len(b.starts), len(b.ends))
	}
	for id, from := range b.starts {
		to, ok := b.ends[id]
		if !ok {
			return fmt.Errorf("arrow %d has no end", id)
		}
		t.Arrows = append(t.Arrows, tracedArrow{from.thread.rank, to.thread.rank, from.thread.name,
			to.thread.name, from.thread.slices[from.slice], to.thread.slices[to.slice]})
	}
	slices.SortFunc(t.Arrows, func(a, b tracedArrow) int {
		return cmp.Or(cmp.Compare(a.From.Start, b.From.Start), cmp.Compare(a.FromRank, b.FromRank),
			cmp.Compare(a.FromTrack, b.FromTrack))
	})
	return nil
}

// The reader of the tests refuses what viewers misread.
func TestTraceReaderRefuses(t *testing.T) {
	written := readText(t, "../observe/trace/testdata/two_ranks.json")
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
		_, err := parseTrace(strings.NewReader(strings.Replace(written, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.new, c.old, err, c.want)
		}
	}
}
