package halo

import (
	"encoding/json"
	"fmt"

	"jacobi/internal/base/shm"
)

// Member describes a rank to a rank that chooses a transport to it. Both ranks of a pair must be given the same
// SharesMemory and Why.
type Member struct {
	Host         string // for messages
	SharesMemory bool   // with the rank that is given the Member
	Why          string // why it does or does not
}

// Peer is a direct transport between two ranks. Connect tries the peers in order, and NATS after them. Both ranks of a
// pair must have the same peers in the same order.
type Peer interface {
	// Name returns the transport's name, the same on both ends.
	Name() string
	// Reachable reports whether Offer to the neighbour is worth trying, and why or why not. Both ends get the same
	// result.
	Reachable(neighbour Member) (bool, string)
	// Offer opens the first end. Accept in the neighbour's process makes the second one from the returned offer.
	Offer(end End) (Link, json.RawMessage, error)
	// Accept opens the second end.
	Accept(end End, offer json.RawMessage) (Link, error)
}

// SharedMemory is the Peer for processes of one node.
type SharedMemory struct{ Options SharedOptions }

// Name returns TransportShared.
func (SharedMemory) Name() string { return TransportShared }

// Reachable reports whether the two ranks share memory.
func (SharedMemory) Reachable(neighbour Member) (bool, string) {
	if !neighbour.SharesMemory {
		return false, neighbour.Why
	}
	return true, neighbour.Why + ", segment mapped"
}

// Offer creates the segment of a link.
func (s SharedMemory) Offer(end End) (Link, json.RawMessage, error) {
	l, h, err := CreateShared(end, s.Options)
	if err != nil {
		return nil, nil, err
	}
	offer, err := json.Marshal(h)
	return l, offer, err
}

// Accept maps the segment.
func (s SharedMemory) Accept(end End, offer json.RawMessage) (Link, error) {
	var h shm.Handle
	if err := json.Unmarshal(offer, &h); err != nil {
		return nil, fmt.Errorf("halo: offer of shared memory: %w", err)
	}
	return OpenShared(end, h, s.Options)
}
