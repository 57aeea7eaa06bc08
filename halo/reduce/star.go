package reduce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jacobi/internal/net/wire"
	"jacobi/solver"
)

const (
	firstAsk = 50 * time.Millisecond // before a leader that waits asks for the missing ranks; it doubles up to lastAsk
	lastAsk  = time.Second

	// notices is the room on a stream for messages about missing ranks, beside one message for each pass.
	notices = 64
)

// star adds the contributions of nodes. Their leaders form a tree (see tree), and streams, which lose nothing, connect
// each with its parent. A leader adds the sums of its node and of the leaders below it, and sends one to its parent.
// The root, which thus has the total, sends it to the leaders below it, and they pass it on.
//
// A message holds the sums of several passes where norms may be late: a leader keeps sums back until it has those of
// window.batch() passes, or until it waits for the total of one of them. Every wait still ends if ranks wait for
// totals at the same points of their runs (docs/protocols.md).
type star struct {
	parent  *wire.Stream // nil at the root
	sources []source     // this leader, then those below it
	maxSums int          // in a contribution
	window  window
	ask     time.Duration
	onTotal func(pass uint64, c solver.Contribution) // called with mu held; may be nil
	onAsk   func(pass uint64)                        // called by a wait whenever it asks; may be nil

	ctx     context.Context // ends with close, and with the error that ends every wait
	cancel  context.CancelCauseFunc
	sending sync.Mutex // held while what is kept back is taken and sent, so that sums keep their order

	mu     sync.Mutex
	slots  []slot
	next   uint64 // the first pass whose sum is not complete here
	wanted uint64 // totals of passes below this one were waited for
	kept   batch
}

// source is a leader whose sums this one adds.
type source struct {
	rank   int
	node   []int        // the ranks of its node
	stream *wire.Stream // nil: it is this leader itself
}

// slot is one pass of this leader.
type slot struct {
	pass    uint64
	have    []bool // by source: it has contributed
	count   int    // of them
	sum     solver.Contribution
	total   solver.Contribution
	done    bool          // total is there
	settled chan struct{} // closed then
	gone    [][]int       // by source: the missing ranks of its subtree, as the leader last named them; nil: not told
	waiting []int         // the missing ranks, as the parent last named them
}

// batch is a message that is kept back.
type batch struct {
	message []byte
	count   int    // of sums
	oldest  uint64 // pass
}

// newStar returns the star of leader self, at its place in the tree. ranks returns those of a leader's node, and open
// this end of the stream to another leader, on which window+notices messages may be under way.
func newStar(o *Options, self int, place tree, ranks func(leader int) []int,
	open func(leader int, handle func(message []byte)) (*wire.Stream, error)) (*star, error) {
	s := &star{sources: []source{{rank: self, node: ranks(self)}}, maxSums: o.MaxSums, window: window(o.Window),
		ask: o.ask}
	for _, leader := range place.below {
		s.sources = append(s.sources, source{rank: leader, node: ranks(leader)})
	}
	s.slots = make([]slot, s.window.ring())
	for i := range s.slots {
		s.slots[i] = s.fresh(uint64(i))
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	with := func(take func(message []byte) error) func([]byte) {
		return func(message []byte) {
			if err := take(message); err != nil {
				s.cancel(err)
			}
		}
	}
	var err error
	if place.parent >= 0 {
		s.parent, err = open(place.parent, with(s.fromAbove))
	}
	for i := 1; i < len(s.sources) && err == nil; i++ {
		below := func(message []byte) error { return s.fromBelow(i, message) }
		s.sources[i].stream, err = open(s.sources[i].rank, with(below))
	}
	return s, err
}

func (s *star) fresh(pass uint64) slot {
	return slot{pass: pass, have: make([]bool, len(s.sources)), settled: make(chan struct{}),
		gone: make([][]int, len(s.sources))}
}

// at returns the slot of pass. It returns nil for a pass that no leader can be at.
func (s *star) at(pass uint64) *slot {
	slot := &s.slots[s.window.slot(pass)]
	if pass < slot.pass || pass >= s.next+uint64(s.window) {
		return nil
	}
	if pass > slot.pass {
		*slot = s.fresh(pass)
	}
	return slot
}

// fromAbove takes a message of the parent: totals, or the missing ranks for which this leader has asked.
func (s *star) fromAbove(message []byte) error {
	if pass, missing, ok := parseMissing(message); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		if slot := s.at(pass); slot != nil {
			slot.waiting = missing
		}
		return nil
	}
	totals, err := parseSums(message, s.maxSums)
	if err != nil {
		return err
	}
	if err := s.sendDown(message); err != nil {
		return err
	}
	for _, t := range totals {
		s.mu.Lock()
		s.settle(t.pass, t.c)
		s.mu.Unlock()
	}
	return nil
}

// fromBelow takes a message of a source: sums, or word that it waits, which is answered with the missing ranks.
func (s *star) fromBelow(i int, message []byte) error {
	if pass, missing, ok := parseMissing(message); ok {
		if answer := s.told(i, pass, missing); len(answer) > 0 {
			return s.sources[i].stream.Send(s.ctx, missingMessage(pass, answer))
		}
		return nil
	}
	sums, err := parseSums(message, s.maxSums)
	for _, e := range sums {
		if err == nil {
			err = s.enter(i, e.pass, e.c)
		}
	}
	return err
}

// told notes the missing ranks that a source has named, and returns those that are known here; none if the total is.
func (s *star) told(i int, pass uint64, missing []int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.at(pass)
	if slot == nil {
		return nil
	}
	if len(missing) > 0 {
		slot.gone[i] = missing
	}
	return s.absent(slot)
}

// post adds the contribution of this leader's node. An error ends every wait.
func (s *star) post(pass uint64, c solver.Contribution) {
	if err := s.enter(0, pass, c); err != nil {
		s.cancel(err)
	}
}

// enter adds the contribution of a source.
func (s *star) enter(i int, pass uint64, c solver.Contribution) error {
	due, err := s.add(i, pass, c)
	if due && err == nil {
		err = s.flush()
	}
	return err
}

// add is enter up to the message, if one is due.
func (s *star) add(i int, pass uint64, c solver.Contribution) (due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.at(pass)
	if slot == nil || slot.have[i] {
		return false, fmt.Errorf("rank %d contributed to pass %d, and the next one is %d", s.sources[i].rank, pass,
			s.next)
	}
	if err := merge(&slot.sum, slot.count == 0, pass, s.sources[i].rank, c); err != nil {
		return false, err
	}
	slot.have[i] = true
	if slot.count++; slot.count < len(s.sources) {
		return false, nil
	}
	s.next = pass + 1 // every source contributes in order
	if s.kept.count++; s.kept.count == 1 {
		s.kept.oldest = pass
	}
	s.kept.message = appendSum(s.kept.message, pass, slot.sum)
	if s.parent == nil {
		s.settle(pass, slot.sum)
	}
	return s.kept.count >= s.window.batch() || s.kept.oldest < s.wanted, nil
}

// settle enters the total of a pass. It is called with mu held.
func (s *star) settle(pass uint64, c solver.Contribution) {
	slot := s.at(pass)
	if slot == nil || slot.done || s.ctx.Err() != nil {
		return
	}
	slot.total, slot.done = c, true
	if s.onTotal != nil {
		s.onTotal(pass, c)
	}
	close(slot.settled)
}

// flush sends the sums that are kept back: to the parent, or from the root to the leaders below.
func (s *star) flush() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	message := s.kept.message
	s.kept = batch{}
	s.mu.Unlock()
	switch {
	case message == nil:
		return nil
	case s.parent != nil:
		return s.parent.Send(s.ctx, message)
	}
	return s.sendDown(message)
}

// sendDown sends a message to all leaders below.
func (s *star) sendDown(message []byte) error {
	for _, from := range s.sources[1:] {
		if err := from.stream.Send(s.ctx, message); err != nil {
			return err
		}
	}
	return nil
}

func (s *star) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	s.mu.Lock()
	slot, due := s.at(pass), s.kept.count > 0 && s.kept.oldest <= pass
	s.wanted = pass + 1
	settled := slot.settled
	s.mu.Unlock()
	if due {
		if err := s.flush(); err != nil {
			return solver.Contribution{}, err
		}
	}
	total := func() (solver.Contribution, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slot.total, nil
	}
	select {
	case <-settled:
		return total()
	default:
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	pause := s.ask
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case <-settled:
			return total()
		case <-again.C:
			if err := s.askAbove(pass); err != nil {
				return solver.Contribution{}, err
			}
			if s.onAsk != nil {
				s.onAsk(pass)
			}
			pause = min(2*pause, lastAsk)
			again.Reset(pause)
		case <-s.ctx.Done():
			return solver.Contribution{}, context.Cause(s.ctx)
		case <-ctx.Done():
			return solver.Contribution{}, context.Cause(ctx)
		case <-late.C:
			return solver.Contribution{}, errLate
		}
	}
}

// askAbove tells the parent that this leader waits for pass, and which ranks here or below are missing from it. The
// parent answers with those that are missing anywhere.
func (s *star) askAbove(pass uint64) error {
	if s.parent == nil {
		return nil
	}
	s.mu.Lock()
	var missing []int
	if slot := s.at(pass); slot != nil {
		missing = s.absentHere(slot)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, lastAsk)
	defer cancel()
	err := s.parent.Send(ctx, missingMessage(pass, missing))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the parent has not taken many earlier ones
	}
	return err
}

// lacks tells the parent which ranks of this leader's node have not contributed to pass.
func (s *star) lacks(pass uint64, gone []int) error {
	s.told(0, pass, gone)
	return s.askAbove(pass)
}

// missing returns the ranks that have not contributed to pass, as far as is known here.
func (s *star) missing(pass uint64) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot := s.at(pass); slot != nil {
		return s.absent(slot)
	}
	return nil
}

func (s *star) absent(slot *slot) []int {
	if here := s.absentHere(slot); len(here) > 0 {
		return here
	}
	return slices.Clone(slot.waiting)
}

// absentHere returns the ranks of this node and below that are missing. If a leader has not named those below it, it
// may be missing itself, and the ranks of its node stand for them.
func (s *star) absentHere(slot *slot) (ranks []int) {
	for i, from := range s.sources {
		switch {
		case slot.have[i]:
		case slot.gone[i] != nil:
			ranks = append(ranks, slot.gone[i]...)
		default:
			ranks = append(ranks, from.node...)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// close ends the star's part of the streams, and every wait. No total is entered afterwards.
func (s *star) close() error {
	s.mu.Lock()
	s.cancel(wire.ErrStreamClosed)
	s.mu.Unlock()
	if s.parent != nil {
		s.parent.Stop()
	}
	for _, from := range s.sources[1:] {
		from.stream.Stop()
	}
	return nil
}

// treeFan is the largest number of leaders that contribute to one leader. Up to 64 nodes contribute to the root.
const treeFan = 63

// tree is the place of a leader among the leaders of all nodes. In ascending order, leader 0 is the root, which is
// rank 0, and leader i > 0 contributes to leader (i-1)/fan.
type tree struct {
	parent int   // -1 for the root
	below  []int // the leaders that contribute to this one
}

// newTree returns the place of leader self, given all leaders, ascending.
func newTree(leaders []int, self, fan int) tree {
	me, _ := slices.BinarySearch(leaders, self)
	first := min(me*fan+1, len(leaders))
	t := tree{parent: -1, below: leaders[first:min(first+fan, len(leaders))]}
	if me > 0 {
		t.parent = leaders[(me-1)/fan]
	}
	return t
}
