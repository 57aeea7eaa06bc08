package reduce

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"jacobi/solver"
)

// root adds the contributions of the nodes. It lives in rank 0, which also leads a node.
type root struct {
	star  *star
	nodes map[int][]int // the ranks of each node, by its leader

	mu    sync.Mutex
	next  uint64 // first pass without a total
	slots []rootSlot
}

// rootSlot is one pass. It collects contributions until those of all nodes have arrived, then keeps the total for
// leaders that ask again.
type rootSlot struct {
	pass  uint64
	have  map[int]bool  // leaders that contributed
	gone  map[int][]int // by leader: the missing ranks of its node, as the leader last named them
	sum   solver.Contribution
	total []byte // the frame with the total, once all have contributed
}

func newRoot(s *star, nodes map[int][]int) *root {
	r := &root{star: s, nodes: nodes, slots: make([]rootSlot, s.window.ring())}
	for b := range r.slots {
		r.slots[b] = rootSlot{pass: uint64(b), have: map[int]bool{}, gone: map[int][]int{}}
	}
	return r
}

func (r *root) slot(pass uint64) *rootSlot { return &r.slots[r.star.window.slot(pass)] }

func (r *root) check(f frame) error {
	if _, leads := r.nodes[f.rank]; !leads || f.rank == 0 || f.kind == total {
		return fmt.Errorf("a frame of kind %d from rank %d, which leads no other node", f.kind, f.rank)
	}
	for _, rank := range f.waiting {
		if !slices.Contains(r.nodes[f.rank], rank) {
			return fmt.Errorf("rank %d waits for rank %d, which is not on its node", f.rank, rank)
		}
	}
	return nil
}

// receive handles a node's contribution, or its list of missing ranks. It answers a leader that asks again.
func (r *root) receive(f frame) {
	r.mu.Lock()
	again, done, sum := r.add(f)
	r.mu.Unlock()
	if done != nil {
		// A leader that misses the total asks for it.
		_ = r.star.publish("all", done)
		r.star.deliver(f.pass, sum)
	}
	if again != nil && f.rank != r.star.self {
		_ = r.star.publish(strconv.Itoa(f.rank), again)
	}
}

// add enters f. It returns the answer to a leader that asks again, or the total if f was the last contribution.
func (r *root) add(f frame) (again, done []byte, sum solver.Contribution) {
	slot := r.slot(f.pass)
	if f.pass >= r.next+uint64(r.star.window) || f.pass < slot.pass {
		return nil, nil, sum // outside the passes that a leader can be at
	}
	if f.pass > slot.pass {
		*slot = rootSlot{pass: f.pass, have: map[int]bool{}, gone: map[int][]int{}}
	}
	switch {
	case slot.total != nil:
		return slot.total, nil, sum
	case f.kind == pending:
		slot.gone[f.rank] = f.waiting
		return r.pending(f.pass), nil, sum
	case slot.have[f.rank]:
		return r.pending(f.pass), nil, sum
	}
	if err := merge(&slot.sum, len(slot.have) == 0, f.pass, f.rank, f.c); err != nil {
		r.star.fail(err)
		return nil, nil, sum
	}
	slot.have[f.rank] = true
	if len(slot.have) < len(r.nodes) {
		return nil, nil, sum
	}
	slot.total = frame{kind: total, run: r.star.run, pass: f.pass, c: slot.sum}.encode()
	for n := r.slot(r.next); n.pass == r.next && n.total != nil; n = r.slot(r.next) {
		r.next++ // only past complete passes: a later one may be complete first
	}
	return nil, slot.total, slot.sum
}

func (r *root) pending(pass uint64) []byte {
	return frame{kind: pending, run: r.star.run, pass: pass, waiting: r.gone(pass)}.encode()
}

func (r *root) missing(pass uint64) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone(pass)
}

// gone returns the ranks that have not contributed to pass, as far as is known. It assumes that all ranks of a node are
// missing if their leader has not named the missing ones.
func (r *root) gone(pass uint64) []int {
	slot := r.slot(pass)
	var ranks []int
	for leader, members := range r.nodes {
		switch {
		case slot.pass == pass && slot.have[leader]:
		case slot.pass == pass && slot.gone[leader] != nil:
			ranks = append(ranks, slot.gone[leader]...)
		default:
			ranks = append(ranks, members...)
		}
	}
	slices.Sort(ranks)
	return ranks
}
