package tune

import (
	"jacobi/halo"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// DirectSaves estimates by how many seconds the sweeps of a run would be shorter over TCP: what the links save in their
// exchanges, by the formula of "The halo depth" in docs/hardware.md, and at most what a rank waited for the network.
// The rank for which that is most counts, because the others wait for it.
func (d Deepening) DirectSaves(ranks []output.RankReport, t setup.Depth) (seconds float64) {
	for _, k := range ranks {
		for side, facing := range map[solver.Side]solver.Side{solver.Top: solver.Bottom, solver.Bottom: solver.Top} {
			l := k.Transports[side.String()]
			if l.Transport != halo.TransportNATS || !l.Traffic.HasWay() {
				continue
			}
			there := ranks[l.Neighbour].Transports[facing.String()]
			above, below := k.Rank, l.Neighbour
			if side == solver.Top {
				above, below = below, above
			}
			n := float64(l.Traffic.Exchanges)
			saved := n * d.exchangeSaves(above, below, travelled(there)/n, t)
			seconds = max(seconds, min(saved, waited(k, l.Traffic)))
		}
	}
	return seconds
}

// travelled returns the bytes that a rank sent for its rows over NATS.
func travelled(l output.LinkReport) float64 {
	if l.Traffic == nil || l.NATS == nil {
		return 0
	}
	return float64(l.Traffic.Bytes)/2 - float64(l.NATS.Plain) + float64(l.NATS.Packed)
}

// waited returns the seconds in which a rank waited for a link, and not for a neighbour that was late.
func waited(k output.RankReport, t *output.TrafficReport) float64 {
	s := t.Send + t.Wait
	if k.HaloWait != nil {
		s = min(s, *k.HaloWait) // on a GPU goroutines wait, for longer than the rank
	}
	if t.Late != nil {
		s -= max(0, *t.Late)
	}
	return max(0, s)
}

// exchangeSaves estimates how much sooner a rank can go on if the bytes of an exchange go over TCP.
func (d Deepening) exchangeSaves(above, below int, bytes float64, t setup.Depth) float64 {
	beside := d.beside(t)
	for _, l := range d.links {
		if l.From == above && l.To == below && l.Fault == "" {
			return max(0, l.exchangeSeconds(bytes, 1)-beside) - max(0, l.exchangeSeconds(bytes, directShare)-beside)
		}
	}
	return 0
}
