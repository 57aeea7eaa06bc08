package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/awake"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// The transports between ranks with GPUs that need no link.
const (
	transportPeer = "peer memory" // CUDA IPC: a rank writes rows into the neighbour's device memory
	transportSelf = "device memory"
)

// peerAnswer is a message to a neighbour: the first has the rank's offer, the second says whether the rank could map
// the neighbour's offer.
type peerAnswer struct {
	Offer json.RawMessage `json:"offer,omitempty"`
	Fault string          `json:"fault,omitempty"` // why peer memory cannot be used
}

// peerRows says how rows travel without a link.
type peerRows struct {
	peers    [2]*cuda.Peer // by side; nil where the rows use a link
	direct   [2]halo.Info  // by side: how the rows travel; empty where they use a link
	indirect [2]string     // by side: why a rank with a GPU uses a link and not peer memory
}

// openPeers tries to map the memory of each neighbour that has a GPU on this node. Both ranks of a pair reach the same
// result.
func (o *opened) openPeers(ctx context.Context) (rows peerRows, err error) {
	if o.gpu == nil {
		return rows, nil
	}
	if o.id.Size == 1 {
		for side := range rows.direct {
			rows.direct[side] = halo.Info{Transport: transportSelf, Why: "the rank is its own neighbour"}
		}
		return rows, nil
	}
	if o.Config.Halo.Transport == string(halo.ModeNATS) {
		return rows, nil
	}
	ctx, cancel := awake.WithTimeout(ctx, o.Config.Halo.Timeout)
	defer cancel()
	theirs, err := o.swap(ctx, "offer", o.offers())
	if err != nil {
		return rows, err
	}
	var mapped [2]peerAnswer
	for side, a := range theirs {
		if mapped[side].Fault = a.Fault; a.Offer != nil {
			if rows.peers[side], err = o.gpu.OpenPeer(solver.Side(side), a.Offer); err != nil {
				mapped[side].Fault = err.Error()
			}
		}
	}
	if theirs, err = o.swap(ctx, "mapped", mapped); err != nil {
		return rows, err
	}
	return rows, o.eachNeighbour(func(side solver.Side, to roster.Member) error {
		return o.settlePeer(&rows, side, to, mapped[side].Fault, theirs[side].Fault)
	})
}

// settlePeer decides whether the rows of one side go through peer memory. mine and theirs are the faults that the two
// ranks have found, "" for none.
func (o *opened) settlePeer(rows *peerRows, side solver.Side, to roster.Member, mine, theirs string) error {
	fault := mine
	if fault == "" && theirs != "" {
		fault = fmt.Sprintf("rank %d: %s", to.Rank, theirs)
	}
	if f := o.noPeer(to); f != "" {
		fault = f
	}
	if fault == "" {
		rows.direct[side] = halo.Info{Transport: transportPeer, Why: "same node, device memory mapped by CUDA IPC"}
		return nil
	}
	if rows.peers[side] != nil {
		if err := rows.peers[side].Close(); err != nil {
			return err
		}
		rows.peers[side] = nil
	}
	return o.withoutPeer(rows, side, to, fault)
}

// withoutPeer notes why the rows of one side use a link.
func (o *opened) withoutPeer(rows *peerRows, side solver.Side, to roster.Member, fault string) error {
	if o.Config.Halo.Transport == string(halo.ModeP2P) && to.Device == o.deviceName() {
		return fmt.Errorf("halo.transport \"p2p\": no peer memory between ranks %d and %d: %s", o.id.Rank, to.Rank,
			fault)
	}
	rows.indirect[side] = fault
	o.Log.Sugar().Infof("no peer memory with rank %d: %s", to.Rank, fault)
	return nil
}

// offers returns the offers to the neighbours at both sides.
func (o *opened) offers() (offers [2]peerAnswer) {
	flags := o.gpu.OpenFlags()
	for side := range offers {
		if flags != nil {
			offers[side].Fault = flags.Error()
			continue
		}
		offer, err := o.gpu.Offer(o.id.Rank, solver.Side(side))
		if err != nil {
			offers[side].Fault = err.Error()
			continue
		}
		offers[side].Offer = offer
	}
	return offers
}

// noPeer returns why the member's device memory cannot be reached; "" if it may be.
func (j *joined) noPeer(m roster.Member) string {
	if m.Device != "cuda" {
		return fmt.Sprintf("rank %d has no GPU", m.Rank)
	}
	if !roster.InOneMemory(j.team.Self(), m) {
		return fmt.Sprintf("rank %d is on another node, or in another container", m.Rank)
	}
	return ""
}

// eachNeighbour calls f for each side that has a neighbour.
func (l *laidOut) eachNeighbour(f func(side solver.Side, to roster.Member) error) error {
	for side, has := range l.layout.Neighbour {
		if !has {
			continue
		}
		if err := f(solver.Side(side), l.neighbour(solver.Side(side))); err != nil {
			return err
		}
	}
	return nil
}

// swap sends mine to each neighbour that may be a peer, and receives theirs.
func (l *laidOut) swap(ctx context.Context, what string, mine [2]peerAnswer) (theirs [2]peerAnswer, err error) {
	g, ctx := errgroup.WithContext(ctx)
	err = l.eachNeighbour(func(side solver.Side, to roster.Member) error {
		if l.noPeer(to) != "" {
			return nil // the neighbour comes to the same conclusion
		}
		b, err := json.Marshal(mine[side])
		if err != nil {
			return err
		}
		g.Go(func() error { return l.team.Send(ctx, to.Rank, fmt.Sprintf("peer %s %v", what, side), b) })
		g.Go(func() error {
			b, err := l.team.Recv(ctx, to.Rank, fmt.Sprintf("peer %s %v", what, side.Opposite()))
			if err != nil {
				return err
			}
			return json.Unmarshal(b, &theirs[side])
		})
		return nil
	})
	return theirs, errors.Join(err, g.Wait())
}
