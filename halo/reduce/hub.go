package reduce

import (
	"fmt"
	"slices"
	"sync"

	"jacobi/solver"
)

// hub adds the contributions of a leader's node and of the subtrees below it (see tree). At the root the sum is the
// total; elsewhere the leader contributes it to its parent.
type hub struct {
	star  *star
	below map[int]subtree

	mu    sync.Mutex
	next  uint64 // first pass without a sum
	slots []hubSlot
}

// hubSlot is one pass. It collects contributions until all have arrived.
type hubSlot struct {
	pass uint64
	have map[int]bool  // leaders that contributed
	gone map[int][]int // by leader: the missing ranks of its subtree, as the leader last named them
	sum  solver.Contribution
}

func newHub(s *star, below map[int]subtree) *hub {
	h := &hub{star: s, below: below, slots: make([]hubSlot, s.window.ring())}
	for i := range h.slots {
		h.slots[i] = hubSlot{pass: uint64(i), have: map[int]bool{}, gone: map[int][]int{}}
	}
	return h
}

func (h *hub) slot(pass uint64) *hubSlot { return &h.slots[h.star.window.slot(pass)] }

// check returns an error for a frame that no leader below sends.
func (h *hub) check(f frame) error {
	if _, leads := h.below[f.rank]; !leads || f.rank == h.star.self || f.kind == total {
		return fmt.Errorf("a frame of kind %d from rank %d, which leads no other node", f.kind, f.rank)
	}
	for _, rank := range f.waiting {
		if !slices.Contains(h.below[f.rank].ranks, rank) {
			return fmt.Errorf("rank %d waits for rank %d, which is not on its node or below", f.rank, rank)
		}
	}
	return nil
}

// answer says what add made of a frame.
type answer uint8

const (
	nothing  answer = iota
	complete        // it was the last contribution to its pass
	again           // the sender asks again
)

// add enters the contribution or the list of missing ranks of a leader. Once a pass is complete, it returns the sum.
func (h *hub) add(f frame) (answer, solver.Contribution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slot := h.slot(f.pass)
	if f.pass >= h.next+uint64(h.star.window) || f.pass < slot.pass {
		return nothing, solver.Contribution{}, nil // outside the passes that a leader can be at
	}
	if f.pass > slot.pass {
		clear(slot.have)
		clear(slot.gone)
		slot.pass = f.pass
	}
	if f.kind == pending {
		slot.gone[f.rank] = f.waiting
	}
	if f.kind == pending || slot.have[f.rank] {
		return again, solver.Contribution{}, nil
	}
	if err := merge(&slot.sum, len(slot.have) == 0, f.pass, f.rank, f.c); err != nil {
		return nothing, solver.Contribution{}, err
	}
	slot.have[f.rank] = true
	if len(slot.have) < len(h.below) {
		return nothing, solver.Contribution{}, nil
	}
	for n := h.slot(h.next); n.pass == h.next && len(n.have) == len(h.below); n = h.slot(h.next) {
		h.next++ // only past complete passes: a later one may be complete first
	}
	return complete, solver.Contribution{Sums: slices.Clone(slot.sum.Sums), Flags: slot.sum.Flags}, nil
}

// missing returns the ranks of this node and below that have not contributed to pass, as far as is known. If a leader
// has not named the missing ranks below it, it may be missing itself, and missing returns the ranks of its node.
func (h *hub) missing(pass uint64) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	slot := h.slot(pass)
	var ranks []int
	for leader, below := range h.below {
		switch {
		case slot.pass == pass && slot.have[leader]:
		case slot.pass == pass && slot.gone[leader] != nil:
			ranks = append(ranks, slot.gone[leader]...)
		default:
			ranks = append(ranks, below.node...)
		}
	}
	slices.Sort(ranks)
	return ranks
}
