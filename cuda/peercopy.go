package cuda

import (
	"context"

	"jacobi/solver"
)

// peerCopy is the path of rows to and from one peer where ranks share GPUs. This rank copies its edge rows into the
// neighbour's halo and then writes the number of the exchange into a word of the neighbour's memory, for which the
// neighbour's stream waits. No kernel waits.
//
// If every pass ends in an exchange, the writer need not ask whether the halo is free: the halo for the rows of
// exchange n+2 was last read by edges that the neighbour swept before it posted exchange n+1, and this rank's stream
// has waited for the rows of exchange n+1. A halo deeper than a pass is read by the passes in between too; each rank
// then tells its neighbours when the halo of its next field has been read for the last time (Exchange.beforeEdges).
type peerCopy struct {
	dev  *device
	peer *peer
}

// post implements path for the peer's side.
func (c *peerCopy) post(_ context.Context, n solver.ExchangeNumber) error {
	d, p := c.dev, c.peer
	if d.deep() {
		if err := d.fast.WaitValue(d.flags.room(p.side), uint32(n)); err != nil {
			return err
		}
	}
	from := d.next.at(d.layout.Edge(p.side).Lo)
	m := d.times.begin(d.fast, solver.Work{Kind: solver.WorkToPeer, Number: uint64(n), Rows: d.layout.Depth})
	if err := d.fast.CopyOnDevice(p.halo(d.next.index), from, d.layout.Depth*d.next.pitch); err != nil {
		return err
	}
	m.end()
	return d.fast.WriteValue(p.came(), uint32(n))
}

// wait implements path for the peer's side.
func (c *peerCopy) wait(_ context.Context, n solver.ExchangeNumber) error {
	defer c.dev.times.begin(c.dev.fast, solver.Work{Kind: solver.WorkAwait, Number: uint64(n)}).end()
	return c.dev.fast.WaitValue(c.dev.flags.came(c.peer.side), uint32(n))
}
