package outputs

import (
	"encoding/json"
	"testing"

	"jacobi/internal/observe/output"
)

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
