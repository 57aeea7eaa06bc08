package tune

import (
	"math"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// The estimate of what TCP would save: 60% of what the bytes of an exchange take over NATS, as the probe has measured,
// and at most what a rank waited for the network.
func TestDirectSaves(t *testing.T) {
	const exchanges = 100
	nats := func(neighbour int, packed, wait, late float64) output.LinkReport {
		way := &output.WayTime{Late: &late}
		return output.LinkReport{Neighbour: neighbour, Transport: halo.TransportNATS,
			NATS: &output.NATSReport{Plain: exchanges * 128 << 10, Packed: uint64(packed * exchanges * (128 << 10))},
			Traffic: &output.TrafficReport{Exchanges: exchanges, Bytes: 2 * exchanges * 128 << 10,
				LinkTime: &output.LinkTime{Send: 0.25, Wait: wait, WayTime: way}}}
	}
	// A message of 256 KiB takes 20 ms longer than a short one, so 128 KiB take 10 ms, 6 ms of which TCP saves.
	links := []linkTime{{From: 0, To: 1, Trip: 2 * time.Millisecond, Large: 22 * time.Millisecond}}
	lost := []linkTime{{From: 0, To: 1, Fault: "rank 1 did not answer"}}
	for _, c := range []struct {
		name       string
		links      []linkTime
		rates      []float64
		packed     float64 // of a byte
		wait, late float64
		held       float64 // halo_wait_seconds
		transport  string
		want       float64
	}{
		{"plain", links, []float64{6e9, 6e9}, 1, 5, 0, 9, "nats", 0.6},
		{"packed to a quarter", links, []float64{6e9, 6e9}, 0.25, 5, 0, 9, "nats", 0.15},
		{"little waiting", links, []float64{6e9, 6e9}, 1, 0.125, 0, 9, "nats", 0.375},
		{"a late neighbour", links, []float64{6e9, 6e9}, 1, 1, 0.75, 9, "nats", 0.5},
		{"a neighbour that is always late", links, []float64{6e9, 6e9}, 1, 1, 9, 9, "nats", 0},
		{"GPUs", links, []float64{0, 0}, 1, 5, 0, 0.5, "nats", 0.5},
		// 16 sweeps take 28.597... us. An exchange takes 30 us, and over TCP, with 12 us, it costs nothing.
		{"GPUs that sweep meanwhile", []linkTime{{From: 0, To: 1, Large: 60 * time.Microsecond}}, []float64{0, 0}, 1,
			5, 0, 9, "nats", 0.00014025244444444},
		{"not measured", nil, []float64{6e9, 6e9}, 1, 5, 0, 9, "nats", 0},
		{"no answer", lost, []float64{6e9, 6e9}, 1, 5, 0, 9, "nats", 0},
		{"TCP", links, []float64{6e9, 6e9}, 1, 5, 0, 9, "direct", 0},
	} {
		mesh := solver.Mesh{NX: 2048, NY: 2048, DType: solver.Float32}
		d := Deepening{mesh: mesh, minRows: 1023, links: c.links, rates: c.rates}
		ranks := []output.RankReport{
			{Rank: 0, HaloWait: &c.held, Transports: map[string]output.LinkReport{
				"bottom": nats(1, c.packed, 0, -c.late)}},
			{Rank: 1, HaloWait: &c.held, Transports: map[string]output.LinkReport{
				"top": nats(0, 1, c.wait, c.late)}},
		}
		if c.transport != halo.TransportNATS {
			for _, k := range ranks {
				for side, l := range k.Transports {
					l.Transport = c.transport
					k.Transports[side] = l
				}
			}
		}
		ranks[0].Transports["bottom"].Traffic.Send = 0
		got := d.DirectSaves(ranks, setup.Depth{Rows: 16, Sweeps: 16})
		if math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %.17g s, want %v", c.name, got, c.want)
		}
	}
}
