package reduce

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/solver"
)

// Sums and missing ranks arrive as they were sent.
func TestMessagesKeepWhatTheyCarry(t *testing.T) {
	want := []passSum{{7, contributionOf(1, 2)}, {8, solver.Contribution{Sums: []solver.Sum{}, Flags: solver.FlagStop}}}
	var message []byte
	for _, s := range want {
		message = appendSum(message, s.pass, s.c)
	}
	if got, err := parseSums(message, testSums); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if pass, ranks, ok := parseMissing(missingMessage(1<<40, []int{3, 70000})); !ok || pass != 1<<40 ||
		!slices.Equal(ranks, []int{3, 70000}) {
		t.Errorf("pass %d, ranks %v, %v", pass, ranks, ok)
	}
	if _, ranks, _ := parseMissing(missingMessage(1, make([]int, 2*maxMissing))); len(ranks) != maxMissing {
		t.Errorf("%d ranks are named, want %d", len(ranks), maxMissing)
	}
}

// A message that no leader sends ends the run with an error. (A stream drops what strangers send: package wire.)
func TestWrongMessages(t *testing.T) {
	good := appendSum(nil, 0, contributionOf(1, 0))
	many := appendSum(nil, 0, solver.Contribution{Sums: make([]solver.Sum, testSums+1)})
	flags, far := slices.Clone(good), appendSum(nil, testWindow, contributionOf(1, 0))
	flags[9] = 0xf0
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"empty":     {nil, "not a message of sums"},
		"kind":      {[]byte("hello, this is no message"), "not a message of sums"},
		"cut":       {good[:len(good)-1], "pass 0 with 1 sums"},
		"cut head":  {append(slices.Clone(good), 1, 2, 3), "a message of sums ends early"},
		"too many":  {many, "at most 70 sums were announced"},
		"flags":     {flags, "flags 0xf0"},
		"twice":     {append(slices.Clone(good), good[1:]...), "rank 1 contributed to pass 0, and the next one is"},
		"too early": {far, "rank 1 contributed to pass 20, and the next one is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			reducers := cluster(t, plain(t), []string{"", ""})
			other := reducers[1].path.(*star)
			if err := other.parent.Send(t.Context(), c.message); err != nil {
				t.Fatal(err)
			}
			if err := reducers[0].Post(t.Context(), 0, contributionOf(0, 0)); err != nil {
				t.Fatal(err)
			}
			_, err := reducers[0].path.wait(t.Context(), 1, time.Now().Add(time.Minute))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// Whatever a message holds, it is refused or read as it was written.
func FuzzMessages(f *testing.F) {
	f.Add(appendSum(appendSum(nil, 8, contributionOf(1, 2)), 9, solver.Contribution{Flags: solver.FlagBusy}))
	f.Add(missingMessage(3, []int{3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		if pass, ranks, ok := parseMissing(b); ok {
			again = missingMessage(pass, ranks)
			b = b[:min(len(b), len(again))] // at most maxMissing ranks are written
		} else if sums, err := parseSums(b, testSums); err == nil {
			for _, s := range sums {
				again = appendSum(again, s.pass, s.c)
			}
		} else {
			return
		}
		if !slices.Equal(again, b) {
			t.Errorf("%x is read and written as %x", b, again)
		}
	})
}
