package soak

import (
	"reflect"
	"testing"

	"jacobi/internal/compute/device"
)

func TestParseFlip(t *testing.T) {
	if f, err := ParseFlip("row=7,rank=0,round=3"); err != nil || *f != (Flip{Rank: 0, Round: 3, Row: 7}) {
		t.Errorf("got %+v, %v", f, err)
	}
	for _, bad := range []string{"", "rank=1", "rank=1,round=0,row=2", "rank=1,round=1,row=-2", "rank=1,round=1,rank=2",
		"rank=1,round=1,row=2,bit=3", "rank=1,round=1,row=x"} {
		if f, err := ParseFlip(bad); err != errFlip {
			t.Errorf("%q: got %+v, %v", bad, f, err)
		}
	}
}

func TestCollect(t *testing.T) {
	var got []Range
	for _, row := range []int{3, 4, 5, 9} {
		got = Collect(got, row)
	}
	text, rows := FormatRows(got)
	last, one := FormatRows(got[1:])
	if !reflect.DeepEqual(got, []Range{{3, 6}, {9, 10}}) || text != "rows 3-5, 9" || rows != 4 || last != "row 9" ||
		one != 1 {
		t.Errorf("got %v, %d %s, %d %s", got, rows, text, one, last)
	}
	for row := 10; row < 1000; row += 2 {
		got = Collect(got, row)
	}
	if len(got) != maxRanges || got[maxRanges-1].Hi != 999 {
		t.Errorf("%d ranges, the last one %v", len(got), got[len(got)-1])
	}
}

// step returns a step of two GPUs. Rank 1 differs in the given rows.
func step(kind Kind, differ ...Range) Step {
	gpu := func(rank int, uuid string) Device {
		return Device{Rank: rank, Host: "a", Device: "cuda", UUID: uuid, PCIBusID: "0000:0a:00.0"}
	}
	return Step{Round: 4, Kind: kind, Sweeps: 100, Elapsed: 2.5, Ranks: []Rank{
		{Device: gpu(0, "GPU-0"), Seconds: 1, Rows: 10, Bits: 640, SHA256: "right"},
		{Device: gpu(1, "GPU-1"), Seconds: 2, Rows: 10, Bits: 640, SHA256: "wrong", Differ: differ},
	}}
}

func TestTotal(t *testing.T) {
	var total Total
	if want := "no bits were compared: the soak ended before its first step"; total.String() != want {
		t.Errorf("%v, want %s", total, want)
	}
	total.Add(step(Alone), true)
	found := total.Add(step(Ring, Range{2, 4}, Range{5, 6}), true)
	if total.String() != "1 round of 2 devices: 2 steps and 300 sweeps in 2.5s, 2,560 bits compared; "+
		"WRONG BITS in 1 result" {
		t.Error(total)
	}
	if len(found) != 1 || found[0].String() != "round 4, ring: WRONG BITS in rows 2-3, 5 (3 of 10) of rank 1 on a: "+
		"cuda (GPU-1 at PCI 0000:0a:00.0)" {
		t.Errorf("found %v", found)
	}
	given := step(Alone)
	given.Ranks[1].Rows, given.Ranks[1].Bits = 0, 0 // the rank gave the step up
	if total.Add(given, true); total.Steps != 2 || total.Rounds != 1 || total.Bits != 3200 || total.Sweeps != 400 {
		t.Errorf("after a step that was given up: %+v", total)
	}
}

// If all devices have the same bits, and these are not those of the reference, the reference is the suspect.
func TestReferenceIsSuspected(t *testing.T) {
	var total Total
	s := step(Alone, Range{2, 4})
	s.Ranks[0].Differ, s.Ranks[0].SHA256 = s.Ranks[1].Differ, s.Ranks[1].SHA256
	if found := total.Add(s, false); len(found) != 2 || total.Suspect == "" {
		t.Errorf("found %v, suspect %q", found, total.Suspect)
	}
	if total = (Total{}); len(total.Add(step(Alone, Range{2, 4}), false)) != 1 || total.Suspect != "" {
		t.Errorf("suspect %q although rank 0 agrees", total.Suspect)
	}
}

func TestStepShowsTheReadings(t *testing.T) {
	s := step(Alone)
	var none *Health
	s.Ranks[0].Health = none.With(device.Health{Celsius: 60, Milliwatts: 500400, SMClock: 1980, MemoryClock: 3201,
		Corrected: 0, Uncorrected: device.Unknown})
	s.Ranks[1].Health = none.With(device.Health{Celsius: 70, Milliwatts: 600000, SMClock: 1980, Corrected: 0,
		Uncorrected: device.Unknown}).With(device.Health{Celsius: 71, Milliwatts: 1, SMClock: 1200, Corrected: 3,
		Uncorrected: device.Unknown, Throttled: []string{"power cap"}})
	want := "round 4, alone: 2 of 2 devices agree, 100 sweeps in 2s; 60 to 71 C; 500 to 600 W; 1200 to 1980 MHz; " +
		"0 to 3 ECC errors corrected; throttled: rank 1 by power cap"
	if s.String() != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if s.Unread() != "" {
		t.Error(s.Unread())
	}
	s.Ranks[0].Unread, s.Ranks[1].Unread = "a CPU sweeps", "a CPU sweeps"
	want = "no readings of temperature, power, clocks and ECC errors: ranks 0, 1: a CPU sweeps"
	if s.Unread() != want {
		t.Error(s.Unread())
	}
}
