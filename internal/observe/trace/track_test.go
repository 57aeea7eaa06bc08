package trace

import (
	"slices"
	"testing"
)

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

// Once units are dropped, a track allocates nothing.
func TestTrackReusesItsMemory(t *testing.T) {
	tr := newTrack(10)
	var unit uint32
	add := func() {
		for range 8 {
			tr.add(record{Unit: unit})
		}
		unit++
	}
	for range 40 {
		add()
	}
	if n := testing.AllocsPerRun(1000, add); n != 0 {
		t.Errorf("%g allocations a pass", n)
	}
}
