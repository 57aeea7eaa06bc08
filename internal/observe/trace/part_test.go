package trace

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/solver"
)

func aPart() Part {
	p := Part{partHead: partHead{Passes: 7, Dropped: 3, DeviceError: 12, Clock: Clock{
		Before: Reading{At: 5, Ahead: -1 << 50, Error: 3}, After: Reading{At: 9, Ahead: 8, Error: 2}}}}
	p.tracks[trackTop] = []record{{Start: 1 << 40, Took: 5, Number: 1 << 33, Unit: 2, Kind: kindSend}}
	p.tracks[trackSolver] = []record{{Start: -4, Took: 1, First: 3, Sweeps: 8, Kind: kindPass},
		{Took: 2, Level: 11, Kind: kind(solver.StepUp)}}
	p.tracks[trackBottom], p.tracks[trackSaver] = []record{}, []record{}
	p.tracks[trackDevice] = []record{{Took: 4, Sweeps: 7, Kind: kindWork + kind(solver.WorkToHost)}}
	p.tracks[trackDevice+1] = []record{}
	return p
}

func TestPartRoundTrip(t *testing.T) {
	want := aPart()
	b, err := want.Encode()
	must(t, err)
	if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// What is no part is refused, whatever it announces.
func TestDecodeRefuses(t *testing.T) {
	encode := func(change func(*Part)) []byte {
		p := aPart()
		change(&p)
		b, err := p.Encode()
		must(t, err)
		return b
	}
	whole := encode(func(*Part) {})
	huge := encode(func(*Part) {})
	const counts = 8 + 8 + 6*8 + 8 // bytes before the numbers of records
	copy(huge[counts:], "\xff\xff\xff\xff")
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":   {nil, "header: EOF"},
		"a piece":   {whole[:len(whole)-1], "1 records in 41 bytes"},
		"more":      {append(whole[:len(whole):len(whole)], 0), "1 bytes too many"},
		"no memory": {huge, "4294967295 records in 168 bytes"},
		"kind": {encode(func(p *Part) { p.tracks[trackTop][0].Kind = 63 }),
			"record of kind 63 at 1099511627776 for 5 ns"},
		"end": {encode(func(p *Part) { p.tracks[trackTop][0].Kind = kindEnd }),
			"record of kind 77 at 1099511627776 for 5 ns"},
		"work": {encode(func(p *Part) { p.tracks[trackDevice][0].Kind = kindWork + 14 }), "record of kind 142 at 0"},
		"GPU":  {encode(func(p *Part) { p.DeviceError = 1 << 62 }), "a clock that is out of range"},
		"backwards": {encode(func(p *Part) { p.tracks[trackTop][0].Took = -1 }),
			"record of kind 65 at 1099511627776 for -1 ns"},
		"far": {encode(func(p *Part) { p.tracks[trackTop][0].Start = 1 << 61 }),
			"record of kind 65 at 2305843009213693952 for 5 ns"},
		"clock": {encode(func(p *Part) { p.Clock.After.Ahead = 1 << 62 }), "a clock that is out of range"},
	} {
		if _, err := Decode(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Every kind has a name and a category.
func TestKindsHaveNames(t *testing.T) {
	valid := 0
	for k := range 256 {
		k := kind(k)
		if k.valid() {
			valid++
			if k.name(0) == "" || k.category() == "" {
				t.Errorf("kind %d: name %q, category %q", k, k.name(0), k.category())
			}
		}
	}
	if valid != len(kinds) {
		t.Errorf("%d kinds and %d names", valid, len(kinds))
	}
}

// unitsOf returns the units of records, each once.
func unitsOf(records []record) []uint32 {
	var units []uint32
	for _, r := range records {
		units = append(units, r.Unit)
	}
	return slices.Compact(units)
}

// A track has all records of the first and of the last units, in order, and counts the units between them.
func TestTrackKeepsFirstAndLast(t *testing.T) {
	for _, c := range []struct {
		keep, units int
		want        []uint32
	}{
		{1, 1, []uint32{0}},
		{1, 5, []uint32{0, 4}},
		{2, 4, []uint32{0, 1, 2, 3}},
		{2, 5, []uint32{0, 1, 3, 4}},
		{3, 100, []uint32{0, 1, 2, 97, 98, 99}},
		{100, 99, nil},
	} {
		tr := newTrack(c.keep)
		var number uint64
		for u := range c.units {
			for range 1 + u%7 { // units have different numbers of records
				tr.add(record{Unit: uint32(u), Number: number})
				number++
			}
		}
		got := tr.records()
		if c.want == nil {
			for u := range c.units {
				c.want = append(c.want, uint32(u))
			}
		}
		if units := unitsOf(got); !slices.Equal(units, c.want) || tr.dropped() != c.units-len(c.want) {
			t.Errorf("%d of %d: units %v, %d dropped; want %v", c.keep, c.units, units, tr.dropped(), c.want)
		}
		var records int
		for _, u := range c.want {
			records += 1 + int(u)%7
		}
		inOrder := slices.IsSortedFunc(got, func(a, b record) int { return int(a.Number) - int(b.Number) })
		if len(got) != records || !inOrder {
			t.Errorf("%d of %d: %d records, want %d in order", c.keep, c.units, len(got), records)
		}
	}
}

// However many records a unit has, a track stays within its bound.
func TestTrackIsBounded(t *testing.T) {
	tr := newTrack(2)
	for i := range 5 * maxRecords {
		tr.add(record{Unit: uint32(i / (2 * maxRecords)), Number: uint64(i)})
	}
	got := tr.records()
	if len(got) != 2*maxRecords || got[maxRecords-1].Number != maxRecords-1 || got[maxRecords].Number != 4*maxRecords ||
		len(tr.tail) != maxRecords {
		t.Errorf("%d records, a ring of %d; the tail begins with %d", len(got), len(tr.tail), got[maxRecords].Number)
	}
}

// Times of this process agree with the clock that all processes of the node share.
func TestClockIsThatOfTheNode(t *testing.T) {
	c := newClock()
	before := monotonic()
	at := c.at(time.Now())
	after := monotonic()
	const slack = int64(time.Millisecond) // for interruptions of newClock
	if at < before-slack || at > after+slack {
		t.Errorf("%d is not between %d and %d", at, before, after)
	}
}

// The reading with the smaller error counts, unless the readings differ by more than their errors. Then the clock is
// taken to drift evenly.
func TestClockOfAnotherNode(t *testing.T) {
	for name, c := range map[string]struct {
		clock  Clock
		at     int64
		want   int64
		drifts bool
	}{
		"rank 0":    {Clock{}, 7, 7, false},
		"before":    {Clock{Reading{100, 50, 5}, Reading{200, 60, 6}}, 150, 100, false},
		"after":     {Clock{Reading{100, 50, 7}, Reading{200, 60, 6}}, 150, 90, false},
		"drift":     {Clock{Reading{100, 50, 4}, Reading{200, 60, 5}}, 150, 95, true},
		"first":     {Clock{Reading{100, 50, 4}, Reading{200, 60, 5}}, 100, 50, true},
		"last":      {Clock{Reading{100, 50, 4}, Reading{200, 60, 5}}, 200, 140, true},
		"slower":    {Clock{Reading{100, -50, 4}, Reading{200, -60, 5}}, 150, 205, true},
		"same time": {Clock{Reading{100, 50, 4}, Reading{100, 60, 5}}, 150, 100, false},
	} {
		if got := c.clock.there(c.at); got != c.want || c.clock.Drifts() != c.drifts {
			t.Errorf("%s: %d, drifts %t; want %d, %t", name, got, c.clock.Drifts(), c.want, c.drifts)
		}
	}
}
