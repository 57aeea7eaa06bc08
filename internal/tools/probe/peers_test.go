package probe

import (
	"reflect"
	"strings"
	"testing"

	"jacobi/cuda/driver"
)

func TestPeersAreJudged(t *testing.T) {
	const fast, slow = 8e-7, 2e-6
	m := &Machine{GPUs: []driver.Device{{Index: 0}, {Index: 1}, {Index: 2}}}
	var r Result
	r.judgePeers(m, []pair{
		{0, 1, true, 390e9, 780e9, fast, false}, {1, 0, true, 390e9, 780e9, fast, false},
		{0, 2, false, 20e9, 30e9, 0, false}, {2, 0, true, 390e9, 780e9, 0, true},
		{1, 2, true, 390e9, 780e9, slow, false}, {2, 1, true, 389e9, 780e9, fast, false},
	})
	want := []string{
		"GPU 0 has no access to the memory of GPU 2; copies go through the host.",
		"GPU 0: copies from GPU 2 bring other bytes.",
		"GPU 0 sends 20.0 GB/s to GPU 2; the median of the pairs is 390 GB/s.",
		"GPUs 0 and 2 exchange 30.0 GB/s; the median of the pairs is 780 GB/s.",
		"GPUs 1 and 2: a write takes 2µs; the median of the pairs is 800ns.",
	}
	if !reflect.DeepEqual(r.Findings, want) {
		t.Errorf("got %q", r.Findings)
	}
	if len(r.Figures) != 16 || r.Figures[0] != (Figure{"peers.gpu0.gpu1.rate", 390e9, "B/s"}) {
		t.Errorf("figures: %v", r.Figures)
	}
	const text = "  copies: a row sends and a column receives\n         GPU 0     GPU 1     GPU 2\n" +
		"  GPU 0  -         390 GB/s  20.0 GB/s\n"
	if !strings.Contains(r.Text, text) {
		t.Errorf("no\n%sin\n%s", text, r.Text)
	}
}
