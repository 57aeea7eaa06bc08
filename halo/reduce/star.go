package reduce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

const (
	firstAsk = 50 * time.Millisecond // before a contribution is sent again; it doubles up to lastAsk
	lastAsk  = time.Second
)

// star adds the contributions of nodes over NATS. Every leader sends the sum of its node and of the nodes below it to
// its parent (see tree), and the root sends the total to all leaders. NATS may lose either. A leader that waits sends
// its sum again, and its parent answers with the total, or with the ranks that are missing.
//
// A message holds the frames of several passes where norms may be late: a leader keeps frames back until it has those
// of window.batch() passes, or until it waits for the total of one of them. Every wait still ends if ranks wait for
// totals at the same points of their runs (docs/protocols.md).
type star struct {
	conn    roster.Conn
	log     *zap.Logger
	run     uint64
	self    int // this rank, a leader
	parent  int // the leader to which this one contributes; -1 for the root
	hub     *hub
	maxSums int // in a contribution
	window  window
	ask     time.Duration
	subject func(to string) string
	onTotal func(pass uint64, c solver.Contribution) // called with mu held; may be nil
	onAsk   func(pass uint64)                        // called by a wait whenever it asks again; may be nil
	subs    []pubsub.Subscription

	mu      sync.Mutex
	closed  bool
	slots   []starSlot
	wanted  uint64 // totals of passes below this one were waited for
	kept    batch
	refused int   // frames that are damaged, or not of this run
	err     error // ends every wait
	failed  chan struct{}
}

// starSlot is one pass of this leader. announce opens it, send sets mine, and deliver sets the total.
type starSlot struct {
	pass    uint64
	open    bool   // false before the slot's first pass
	mine    []byte // the frame for the parent; nil until it is complete
	total   solver.Contribution
	have    bool
	ready   chan struct{} // closed once have is true
	waiting []int         // the missing ranks, as the parent last named them
}

// batch holds the frames that are kept back to be sent in one message.
type batch struct {
	frames []byte
	count  int
	oldest uint64 // pass
}

func newStar(ctx context.Context, o *Options, place tree) (*star, error) {
	t := o.Comm
	s := starOver(t.Conn(), t.Self().Rank, place, o)
	s.run = hashRun(t.Name())
	s.subject = func(to string) string { return t.Subject(fmt.Sprintf("sum.%016x.%s", s.run, to)) }
	if err := s.listen(); err != nil {
		return nil, err
	}
	if err := s.conn.FlushWithContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe: %w", err), s.close())
	}
	return s, nil
}

// starOver returns the star of leader self, which does not listen yet.
func starOver(conn roster.Conn, self int, t tree, o *Options) *star {
	s := &star{conn: conn, log: o.Log, self: self, parent: t.parent, maxSums: o.MaxSums, ask: o.ask,
		window: window(o.Window), slots: make([]starSlot, window(o.Window).ring()), failed: make(chan struct{})}
	if t.below != nil {
		s.hub = newHub(s, t.below)
	}
	return s
}

func (s *star) listen() error {
	to := []string{strconv.Itoa(s.self)}
	if s.parent >= 0 {
		to = append(to, "all")
	}
	for _, to := range to {
		sub, err := s.conn.Subscribe(s.subject(to), s.receive)
		if err != nil {
			return errors.Join(fmt.Errorf("subscribe: %w", err), s.close())
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

// post announces and contributes at once. It serves a node of one rank.
func (s *star) post(pass uint64, c solver.Contribution) error {
	s.announce(pass)
	return s.contribute(pass, c)
}

// announce makes the slot of pass ready for its total.
func (s *star) announce(pass uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.slot(pass) = starSlot{pass: pass, open: true, ready: make(chan struct{})}
}

// contribute adds the node's contribution.
func (s *star) contribute(pass uint64, c solver.Contribution) error {
	f := frame{kind: contribution, run: s.run, pass: pass, rank: s.self, c: c}
	if s.hub != nil {
		return s.enter(f)
	}
	return s.send(f)
}

// enter adds a frame from this node or from a leader below. If the leader asks again, enter answers.
func (s *star) enter(f frame) error {
	result, sum, err := s.hub.add(f)
	switch {
	case err != nil:
		s.fail(err)
		return nil // every wait ends with it
	case result == again && f.rank != s.self:
		return s.publish(strconv.Itoa(f.rank), s.answer(f.pass).appendTo(nil))
	case result != complete:
		return nil
	}
	if s.parent >= 0 {
		return s.send(frame{kind: contribution, run: s.run, pass: f.pass, rank: s.self, c: sum})
	}
	s.deliver(f.pass, sum)
	return s.send(frame{kind: total, run: s.run, pass: f.pass, rank: s.self, c: sum})
}

// send sends f to the parent, or from the root to all, at once or together with frames of later passes.
func (s *star) send(f frame) error {
	s.mu.Lock()
	slot := s.slot(f.pass)
	slot.mine = f.appendTo(nil)
	if s.kept.count == 0 || f.pass < s.kept.oldest {
		s.kept.oldest = f.pass
	}
	s.kept.frames = append(s.kept.frames, slot.mine...)
	s.kept.count++
	due := s.kept.count >= s.window.batch() || s.kept.oldest < s.wanted
	s.mu.Unlock()
	if due {
		return s.flush()
	}
	return nil
}

// flush sends the frames that are kept back.
func (s *star) flush() error {
	s.mu.Lock()
	frames := s.kept.frames
	s.kept = batch{}
	s.mu.Unlock()
	if frames == nil {
		return nil
	}
	return s.publish(s.upwards(), frames)
}

// upwards returns where the sums of this leader go.
func (s *star) upwards() string {
	if s.parent < 0 {
		return "all"
	}
	return strconv.Itoa(s.parent)
}

// publish sends b. It ignores that b is lost while the client reconnects: a rank that waits sends its sum again.
func (s *star) publish(to string, b []byte) error {
	err := s.conn.Publish(s.subject(to), b)
	if errors.Is(err, pubsub.ErrLost) {
		return nil
	}
	return err
}

func (s *star) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	s.mu.Lock()
	ready, due := s.slot(pass).ready, s.kept.count > 0 && s.kept.oldest <= pass
	s.wanted = pass + 1
	s.mu.Unlock()
	if due {
		if err := s.flush(); err != nil {
			return solver.Contribution{}, err
		}
	}
	select {
	case <-ready:
		return s.totalOf(pass), nil
	default:
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	pause := s.ask
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case <-ready:
			return s.totalOf(pass), nil
		case <-again.C:
			if err := s.askAgain(pass); err != nil {
				return solver.Contribution{}, err
			}
			if s.onAsk != nil {
				s.onAsk(pass)
			}
			pause = min(2*pause, lastAsk)
			again.Reset(pause)
		case <-s.failed:
			return solver.Contribution{}, s.err
		case <-ctx.Done():
			return solver.Contribution{}, context.Cause(ctx)
		case <-late.C:
			return solver.Contribution{}, errLate
		}
	}
}

func (s *star) totalOf(pass uint64) solver.Contribution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slot(pass).total
}

func (s *star) slot(pass uint64) *starSlot { return &s.slots[s.window.slot(pass)] }

// deliver sets the total of pass. Repetitions change nothing.
func (s *star) deliver(pass uint64, c solver.Contribution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slot(pass)
	if s.closed || !slot.open || slot.pass != pass || slot.have {
		return
	}
	slot.total, slot.have = c, true
	if s.onTotal != nil {
		s.onTotal(pass, c)
	}
	close(slot.ready)
}

// fail ends all waits with err.
func (s *star) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.failed)
	}
}

// close unsubscribes. A message that arrives later has no effect.
func (s *star) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // fails only on a closed connection
	}
	return nil
}

// treeFan is the largest number of leaders that contribute to one leader. Up to 64 nodes contribute to the root.
const treeFan = 63

// tree is the place of a leader among the leaders of all nodes. In ascending order, leader 0 is the root, which is
// rank 0, and leader i > 0 contributes to leader (i-1)/fan.
type tree struct {
	parent int             // -1 for the root
	below  map[int]subtree // this node alone, and every subtree below it, by leader; nil if there is none below
}

// subtree is the part of a tree below and with a leader.
type subtree struct {
	node  []int // the ranks of the leader's node
	ranks []int // all ranks, ascending
}

// newTree returns the place of leader self, given all leaders, ascending, and the ranks of every leader's node, for
// which only a leader with others below it asks.
func newTree(leaders []int, byLeader func() map[int][]int, self, fan int) tree {
	me, _ := slices.BinarySearch(leaders, self)
	t := tree{parent: -1}
	if me > 0 {
		t.parent = leaders[(me-1)/fan]
	}
	if me*fan+1 >= len(leaders) {
		return t
	}
	nodes := byLeader()
	t.below = map[int]subtree{self: {nodes[self], nodes[self]}}
	for child := me*fan + 1; child <= min(me*fan+fan, len(leaders)-1); child++ {
		t.below[leaders[child]] = subtree{nodes[leaders[child]], ranksBelow(nodes, leaders, child, fan)}
	}
	return t
}

// ranksBelow returns the ranks of the subtree of the leader with index i, ascending.
func ranksBelow(nodes map[int][]int, leaders []int, i, fan int) []int {
	ranks := slices.Clone(nodes[leaders[i]])
	for child := i*fan + 1; child <= min(i*fan+fan, len(leaders)-1); child++ {
		ranks = append(ranks, ranksBelow(nodes, leaders, child, fan)...)
	}
	slices.Sort(ranks)
	return ranks
}
