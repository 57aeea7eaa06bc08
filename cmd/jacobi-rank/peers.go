package main

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

// openPeers tries to map the memory of each neighbour that has a GPU on this node. Both ranks of a pair reach the same
// result. On a side with a nil peer the rows use a link.
func (r *rank) openPeers(ctx context.Context) (peers [2]*cuda.Peer, err error) {
	if r.gpu == nil {
		return peers, nil
	}
	if r.id.Size == 1 {
		for side := range r.direct {
			r.direct[side] = halo.Info{Transport: transportSelf, Why: "the rank is its own neighbour"}
		}
		return peers, nil
	}
	if r.cfg.Halo.Transport == string(halo.ModeNATS) {
		return peers, nil
	}
	ctx, cancel := awake.WithTimeout(ctx, r.cfg.Halo.Timeout)
	defer cancel()
	theirs, err := r.swap(ctx, "offer", r.offers())
	if err != nil {
		return peers, err
	}
	var mapped [2]peerAnswer
	for side, a := range theirs {
		if mapped[side].Fault = a.Fault; a.Offer != nil {
			if peers[side], err = r.gpu.OpenPeer(solver.Side(side), a.Offer); err != nil {
				mapped[side].Fault = err.Error()
			}
		}
	}
	if theirs, err = r.swap(ctx, "mapped", mapped); err != nil {
		return peers, err
	}
	return peers, r.eachNeighbour(func(side solver.Side, to roster.Member) error {
		fault := mapped[side].Fault
		if f := theirs[side].Fault; fault == "" && f != "" {
			fault = fmt.Sprintf("rank %d: %s", to.Rank, f)
		}
		if f := r.noPeer(to); f != "" {
			fault = f
		}
		if fault == "" {
			r.direct[side] = halo.Info{Transport: transportPeer, Why: "same node, device memory mapped by CUDA IPC"}
			return nil
		}
		if peers[side] != nil {
			if err := peers[side].Close(); err != nil {
				return err
			}
			peers[side] = nil
		}
		if r.cfg.Halo.Transport == string(halo.ModeP2P) && to.Device == r.deviceName() {
			return fmt.Errorf("halo.transport \"p2p\": no peer memory between ranks %d and %d: %s", r.id.Rank, to.Rank,
				fault)
		}
		r.indirect[side] = fault
		r.log.Sugar().Infof("no peer memory with rank %d: %s", to.Rank, fault)
		return nil
	})
}

// offers returns the offers to the neighbours at both sides.
func (r *rank) offers() (offers [2]peerAnswer) {
	flags := r.gpu.OpenFlags()
	for side := range offers {
		if flags != nil {
			offers[side].Fault = flags.Error()
			continue
		}
		offer, err := r.gpu.Offer(r.id.Rank, solver.Side(side))
		if err != nil {
			offers[side].Fault = err.Error()
			continue
		}
		offers[side].Offer = offer
	}
	return offers
}

// noPeer returns why the member's device memory cannot be reached; "" if it may be.
func (r *rank) noPeer(m roster.Member) string {
	switch self := r.team.Self(); {
	case m.Device != "cuda":
		return fmt.Sprintf("rank %d has no GPU", m.Rank)
	case self.NodeID == "" || self.NodeID != m.NodeID:
		return fmt.Sprintf("rank %d is on another node, or in another container", m.Rank)
	}
	return ""
}

// eachNeighbour calls f for each side that has a neighbour.
func (r *rank) eachNeighbour(f func(side solver.Side, to roster.Member) error) error {
	members := r.team.Members()
	for side, has := range r.layout.Neighbour {
		if !has {
			continue
		}
		neighbour := (r.id.Rank + 2*side - 1 + r.id.Size) % r.id.Size
		if err := f(solver.Side(side), members[neighbour]); err != nil {
			return err
		}
	}
	return nil
}

// swap sends mine to each neighbour that may be a peer, and receives theirs.
func (r *rank) swap(ctx context.Context, what string, mine [2]peerAnswer) (theirs [2]peerAnswer, err error) {
	g, ctx := errgroup.WithContext(ctx)
	err = r.eachNeighbour(func(side solver.Side, to roster.Member) error {
		if r.noPeer(to) != "" {
			return nil // the neighbour comes to the same conclusion
		}
		b, err := json.Marshal(mine[side])
		if err != nil {
			return err
		}
		g.Go(func() error { return r.team.Send(ctx, to.Rank, fmt.Sprintf("peer %s %v", what, side), b) })
		g.Go(func() error {
			b, err := r.team.Recv(ctx, to.Rank, fmt.Sprintf("peer %s %v", what, side.Opposite()))
			if err != nil {
				return err
			}
			return json.Unmarshal(b, &theirs[side])
		})
		return nil
	})
	return theirs, errors.Join(err, g.Wait())
}
