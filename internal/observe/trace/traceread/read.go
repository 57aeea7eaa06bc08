// Package traceread reads the traces of runs. It refuses what the Trace Event Format or its viewers do not allow, and
// whatever a trace of this program does not have.
package traceread

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
	"time"

	"jacobi/internal/observe/trace"
)

// Trace is a trace as a viewer sees it.
type Trace struct {
	About  trace.About
	Ranks  []Rank
	Arrows []Arrow
}

// Rank is a process.
type Rank struct {
	Name   string
	Tracks map[string][]Slice // by the name of the thread, from the first to the last
}

// Slice is a complete event. Times are since ts 0.
type Slice struct {
	Name, Category string
	Start, Took    time.Duration
	Depth          int // slices of the track that enclose it
	Args           map[string]int64
}

// Arrow is a flow from the rank and track of a send to those of a receive.
type Arrow struct {
	FromRank, ToRank   int
	FromTrack, ToTrack string
	From, To           Slice
}

// Sum adds up the times of a rank's slices by category.
func (r Rank) Sum() map[string]time.Duration {
	sums := map[string]time.Duration{}
	for _, slices := range r.Tracks {
		for _, s := range slices {
			sums[s.Category] += s.Took
		}
	}
	return sums
}

// event is any event; keys says which keys it has.
type event struct {
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

// keys are those of events, by ph: of metadata, a slice, and the beginning and the end of an arrow.
var keys = map[string][]string{
	"M": {"args", "name", "ph", "pid", "tid", "ts"},
	"X": {"args", "cat", "dur", "name", "ph", "pid", "tid", "ts"},
	"s": {"cat", "id", "name", "ph", "pid", "tid", "ts"},
	"f": {"bp", "cat", "id", "name", "ph", "pid", "tid", "ts"},
}

// file is the object of the Trace Event Format.
type file struct {
	Unit   string            `json:"displayTimeUnit"`
	Events []json.RawMessage `json:"traceEvents"`
	Other  trace.About       `json:"otherData"`
}

// Read reads a trace. Its errors name the event.
func Read(r io.Reader) (Trace, error) {
	var f file
	if err := strictly(r, &f); err != nil {
		return Trace{}, err
	}
	if f.Unit != "ns" { // viewers take shorter slices for parts of those before them
		return Trace{}, fmt.Errorf("displayTimeUnit %q", f.Unit)
	}
	if len(f.Events) == 0 {
		return Trace{}, errors.New("no events")
	}
	b := &builder{threads: map[int]*thread{}, starts: map[uint64]end{}, ends: map[uint64]end{}}
	for i, text := range f.Events {
		if err := b.add(text); err != nil {
			return Trace{}, fmt.Errorf("event %d, %s: %w", i, text, err)
		}
	}
	t := Trace{About: f.Other}
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

type thread struct {
	rank   int
	name   string
	slices []Slice
	open   []time.Duration // ends of the slices that enclose the newest one, and its own
}

// end is one end of an arrow.
type end struct {
	thread *thread
	slice  int
}

type builder struct {
	names        []string // of ranks
	threads      map[int]*thread
	starts, ends map[uint64]end
}

func (b *builder) add(text []byte) error {
	var e event
	var has map[string]json.RawMessage
	if err := errors.Join(strictly(bytes.NewReader(text), &e), json.Unmarshal(text, &has)); err != nil {
		return err
	}
	wanted, known := keys[e.Phase]
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
func (b *builder) meta(e event) error {
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
		b.threads[e.TID] = &thread{rank: e.PID - 1, name: *args.Name}
	case "thread_sort_index":
		if t == nil || args.Sort == nil {
			return errors.New("no thread, or no index")
		}
	default:
		return errors.New("unknown metadata")
	}
	return nil
}

var microseconds = regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`)

// exactly returns a number of microseconds with three decimals.
func exactly(n json.Number) (time.Duration, error) {
	if !microseconds.MatchString(n.String()) {
		return 0, fmt.Errorf("%q: must be microseconds with three decimals", n)
	}
	ns, err := strconv.ParseInt(strings.Replace(n.String(), ".", "", 1), 10, 64)
	return time.Duration(ns), err
}

// threadOf returns the thread of an event.
func (b *builder) threadOf(e event) (*thread, error) {
	t := b.threads[e.TID]
	if t == nil || t.rank != e.PID-1 {
		return nil, errors.New("a thread without a name, or of another process")
	}
	return t, nil
}

// slice takes a complete event. Slices of a thread come in order, and nest.
func (b *builder) slice(e event) error {
	t, err := b.threadOf(e)
	if err != nil {
		return err
	}
	s := Slice{Name: e.Name, Category: e.Category}
	if s.Start, err = exactly(e.Time); err != nil {
		return err
	}
	if s.Took, err = exactly(e.Duration); err != nil {
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
func (b *builder) arrow(e event, ends map[uint64]end) error {
	t, err := b.threadOf(e)
	if err != nil {
		return err
	}
	at, err := exactly(e.Time)
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
	ends[e.ID] = end{t, n}
	return nil
}

// finish pairs the ends of arrows and sorts what was read.
func (b *builder) finish(t *Trace) error {
	for _, name := range b.names {
		t.Ranks = append(t.Ranks, Rank{Name: name, Tracks: map[string][]Slice{}})
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
		t.Arrows = append(t.Arrows, Arrow{from.thread.rank, to.thread.rank, from.thread.name,
			to.thread.name, from.thread.slices[from.slice], to.thread.slices[to.slice]})
	}
	slices.SortFunc(t.Arrows, func(a, b Arrow) int {
		return cmp.Or(cmp.Compare(a.From.Start, b.From.Start), cmp.Compare(a.FromRank, b.FromRank),
			cmp.Compare(a.FromTrack, b.FromTrack))
	})
	return nil
}
