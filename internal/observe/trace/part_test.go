package trace

import (
	"reflect"
	"strings"
	"testing"

	"jacobi/solver"
)

func aPart() Part {
	p := Part{Passes: 7, Dropped: 3, DeviceError: 12, Clock: Clock{Before: Reading{At: 5, Ahead: -1 << 50, Error: 3},
		After: Reading{At: 9, Ahead: 8, Error: 2}}}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
			"record of kind 76 at 1099511627776 for 5 ns"},
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
	if valid != len(names) {
		t.Errorf("%d kinds and %d names", valid, len(names))
	}
}
