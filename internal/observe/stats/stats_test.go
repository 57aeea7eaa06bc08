package stats

import (
	"reflect"
	"strings"
	"testing"
)

// A message is read as it was sent; what no rank sends is refused.
func TestParse(t *testing.T) {
	got, err := Parse([]byte(`{"host":"a","backend":"cpu","stripe":[1,9],"elapsed":2,"sweeps":30,"start":10,` +
		`"updates":160,"halo_wait":0.5,"norm_wait":0.25,` +
		`"recent":{"seconds":1,"glups":2.5,"halo_wait":0.5,"norm_wait":0},` +
		`"halos":[{"side":"top","neighbour":3,"transport":"nats","sent_bytes":80,"received_bytes":72,"resent":1}],` +
		`"memory":{"field":4,"resident":5,"peak":6},"gpu":{"index":1,"celsius":45}}`))
	want := Rank{Host: "a", Backend: "cpu", Stripe: [2]int{1, 9}, Elapsed: 2, Sweeps: 30, Start: 10, Updates: 160,
		HaloWait: new(0.5), NormWait: 0.25, Recent: Recent{1, 2.5, new(0.5), 0},
		Halos:  []Halo{{Side: "top", Neighbour: 3, Transport: "nats", Sent: 80, Received: 72, Resent: 1}},
		Memory: Memory{4, 5, 6}, GPU: &GPU{Index: 1, Celsius: new(int64(45))}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		`{`:                             "statistics: unexpected end of JSON input",
		`{"rank`:                        "statistics: unexpected end of JSON input",
		`{"sweeps":-1}`:                 "statistics: a number is negative",
		`{"elapsed":-1}`:                "statistics: a number is negative",
		`{"norm_wait":-1}`:              "statistics: a number is negative",
		`{"recent":{"halo_wait":-0.1}}`: "statistics: a number is negative",
		`{"stripe":[3,2]}`:              "statistics: they contradict themselves",
		`{"start":1}`:                   "statistics: they contradict themselves",
		`{"halos":[{},{},{}]}`:          "statistics: they contradict themselves",
		strings.Repeat(" ", 1<<16+1):    "statistics of 65537 bytes: at most 65536 are allowed",
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

// A rank lags if the others wait and it does not.
func TestLagging(t *testing.T) {
	rank := func(halo, norm float64) *Rank { return &Rank{Recent: Recent{HaloWait: &halo, NormWait: norm}} }
	gpu := &Rank{Recent: Recent{NormWait: 0.9}}
	for _, c := range []struct {
		ranks []*Rank
		want  []int
	}{
		{nil, nil},
		{[]*Rank{rank(0, 0)}, nil},
		{[]*Rank{rank(0.1, 0.1), rank(0.1, 0.05)}, nil},
		{[]*Rank{rank(0.3, 0.2), rank(0.02, 0)}, []int{1}},
		{[]*Rank{rank(0.02, 0.03), rank(0.3, 0.3), nil, rank(0.5, 0.1), rank(0, 0.1)}, []int{0, 4}},
		{[]*Rank{rank(0.4, 0.2), rank(0.4, 0.1), rank(0.2, 0.2)}, nil},
		{[]*Rank{gpu, gpu, rank(0, 0)}, nil},
	} {
		if got := Lagging(c.ranks); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.ranks, got, c.want)
		}
	}
}
