package outputs

import (
	"encoding/json"
	"slices"
	"testing"

	"jacobi/internal/observe/output"
)

// Where one rank has no part in the results, there are none, and the first such rank says why.
func TestFiguresOfARankAreMissing(t *testing.T) {
	o := smallOutputs(t)
	f := &figures{Outputs: o}
	got := f.merge([]figuresPart{{}, {Fault: "gone"}, {Fault: "gone, too"}},
		func(rank int) string { return []string{"a", "b", "c"}[rank] })
	if got.fault != "rank 1 on b: gone" || got.results != nil || got.nearness != nil || got.residual != nil {
		t.Errorf("%+v", got)
	}
}

// What ranks lack is entered under its name with the first rank that lacks it. A picture that a rank lacks is not
// drawn.
func TestMissingOutputs(t *testing.T) {
	o := smallOutputs(t)
	o.Config.Output.Picture, o.Config.Output.Field = "u.png", "u.vti"
	report := output.Report{Ranks: []output.RankReport{
		{Rank: 0, Host: "a", Missing: map[string]string{"coefficient in u.vti": "gone"}},
		{Rank: 1, Host: "b", Missing: map[string]string{"coefficient in u.vti": "gone, too", "u.png": "gone as well"}},
	}}
	picture, err := o.miss(&report, "rank 2 on c: no file", nil)
	must(t, err)
	want := []output.FileFault{{Name: "results", Error: "rank 2 on c: no file"},
		{Name: "coefficient in u.vti", Error: "rank 0 on a: gone"}}
	if !slices.Equal(report.Missing, want) || report.Failed != nil {
		t.Errorf("missing %v, failed %v; want %v", report.Missing, report.Failed, want)
	}
	if _, err := picture(); err == nil || err.Error() != "rank 1 on b: gone as well" {
		t.Errorf("picture: %v", err)
	}
	if err := report.Fault(); err == nil || err.Error() !=
		"no results: rank 2 on c: no file\nno coefficient in u.vti: rank 0 on a: gone" {
		t.Errorf("fault: %v", err)
	}
}

// Three ranks in a ring: the wire and the lateness follow from both ends of a link, whatever their clocks.
func TestSettleWires(t *testing.T) {
	link := func(neighbour int, exchanges uint64, turn float64) output.LinkReport {
		return output.LinkReport{Neighbour: neighbour, Traffic: &output.TrafficReport{Exchanges: exchanges,
			LinkTime: &output.LinkTime{WayTime: &output.WayTime{Turn: turn}}}}
	}
	bare := output.LinkReport{Neighbour: 2, Traffic: &output.TrafficReport{Exchanges: 8}}
	ranks := []output.RankReport{
		{Transports: map[string]output.LinkReport{"top": link(2, 8, 0.25), "bottom": link(1, 8, 5)}},
		// one exchange less was counted, and this rank hands its rows over later
		{Transports: map[string]output.LinkReport{"top": link(0, 4, -2), "bottom": bare}},
		{Transports: map[string]output.LinkReport{"top": link(1, 8, 3), "bottom": link(0, 8, -0.5)}},
	}
	settleWires(ranks)
	for _, c := range []struct {
		rank       int
		side       string
		wire, late float64
	}{{0, "bottom", 0.5, 4.5}, {1, "top", 0.25, -2.25}, {0, "top", 0, 0.375}, {2, "bottom", 0, -0.375}} {
		w := ranks[c.rank].Transports[c.side].Traffic.WayTime
		if w.Wire == nil || *w.Wire != c.wire || w.Late == nil || *w.Late != c.late {
			got, err := json.Marshal(w)
			t.Errorf("rank %d, %s: %s, %v; want wire %v, late %v", c.rank, c.side, got, err, c.wire, c.late)
		}
	}
	if w := ranks[2].Transports["top"].Traffic.WayTime; w.Wire != nil || w.Late != nil {
		t.Errorf("a wire was made up: %+v", w)
	}
}
