package halo

import (
	"encoding/json"
	"fmt"

	"jacobi/internal/shm"
)

// Member describes a rank to the ranks that choose a transport to it.
type Member struct {
	Rank int
	Host string   // for messages
	Node shm.Node // zero if unknown: then no memory is shared
}

// Peer is a direct transport between two ranks. Connect tries the peers in order, and NATS after them. Both ranks of a
// pair must have the same peers in the same order.
type Peer interface {
	// Name returns the transport's name, the same on both ends.
	Name() string
	// Reachable reports whether Offer is worth trying, and why or why not. Both ends get the same result.
	Reachable(mine, theirs Member) (bool, string)
	// Offer opens the first end. Accept in the neighbour's process makes the second one from the returned offer.
	Offer(end End) (Link, json.RawMessage, error)
	// Accept opens the second end.
	Accept(end End, offer json.RawMessage) (Link, error)
}

// SharedMemory is the Peer for processes of one node.
type SharedMemory struct{ Options SharedOptions }

// Name returns TransportShared.
func (SharedMemory) Name() string { return TransportShared }

// Reachable compares the members' nodes.
func (SharedMemory) Reachable(mine, theirs Member) (bool, string) {
	a, b := mine.Node, theirs.Node
	if mine.Rank > theirs.Rank { // the same words on both ends
		a, b = b, a
		mine, theirs = theirs, mine
	}
	switch {
	case a.Boot == "" || b.Boot == "":
		return false, fmt.Sprintf("unknown node: rank %d on %s, rank %d on %s", mine.Rank, mine.Host, theirs.Rank,
			theirs.Host)
	case a.Boot != b.Boot:
		return false, fmt.Sprintf("different nodes: rank %d on %s, rank %d on %s", mine.Rank, mine.Host, theirs.Rank,
			theirs.Host)
	case a.PIDNamespace != b.PIDNamespace:
		return false, fmt.Sprintf("same node, but PID namespaces %s and %s", a.PIDNamespace, b.PIDNamespace)
	case a.User != b.User:
		return false, fmt.Sprintf("same node, but users %d and %d", a.User, b.User)
	}
	return true, fmt.Sprintf("same node (%v), segment mapped", a)
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
