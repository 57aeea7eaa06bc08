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

	"jacobi/internal/pubsub"
	"jacobi/internal/roster"
	"jacobi/solver"
)

const (
	firstAsk = 50 * time.Millisecond // before a contribution is sent again; it doubles up to lastAsk
	lastAsk  = time.Second
)

// star adds the contributions of nodes over NATS. Every leader sends its node's contribution to the root, which is rank
// 0, and the root sends the total to all leaders. NATS may lose either. A leader that waits sends its contribution
// again, and the root answers with the total, or with the ranks that are missing.
type star struct {
	conn    roster.Conn
	log     *zap.Logger
	run     uint64
	self    int // this rank, a leader
	maxSums int // in a contribution
	window  window
	ask     time.Duration
	subject func(to string) string
	root    *root                                    // of rank 0; nil on the others
	onTotal func(pass uint64, c solver.Contribution) // called with mu held; may be nil
	onAsk   func(pass uint64)                        // called by a wait whenever it asks again; may be nil
	subs    []pubsub.Subscription

	mu      sync.Mutex
	closed  bool
	slots   []starSlot
	refused int   // frames that are damaged, or not of this run
	err     error // ends every wait
	failed  chan struct{}
}

// starSlot is one pass of this node. announce opens it, contribute sets mine, and deliver sets the total.
type starSlot struct {
	pass    uint64
	open    bool   // false before the slot's first pass
	mine    []byte // the frame with the node's contribution; nil until it is complete
	total   solver.Contribution
	have    bool
	ready   chan struct{} // closed once have is true
	waiting []int         // the missing ranks, as the root last named them
}

func newStar(ctx context.Context, o *Options, nodes map[int][]int) (*star, error) {
	t := o.Team
	s := &star{
		conn: t.Conn(), log: o.Log, run: hashRun(t.Self().RunID), self: t.Self().Rank, maxSums: o.MaxSums, ask: o.ask,
		window: window(o.Window), slots: make([]starSlot, window(o.Window).ring()),
		subject: func(to string) string { return t.Subject("sum." + to) }, failed: make(chan struct{}),
	}
	listen := []string{"all", strconv.Itoa(s.self)}
	if s.self == 0 {
		s.root = newRoot(s, nodes)
		listen = []string{"root"}
	}
	for _, to := range listen {
		sub, err := s.conn.Subscribe(s.subject(to), s.receive)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("subscribe: %w", err), s.close())
		}
		s.subs = append(s.subs, sub)
	}
	if err := s.conn.FlushWithContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe: %w", err), s.close())
	}
	return s, nil
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
	s.slots[s.window.slot(pass)] = starSlot{pass: pass, open: true, ready: make(chan struct{})}
}

// contribute sends the node's contribution.
func (s *star) contribute(pass uint64, c solver.Contribution) error {
	f := frame{kind: contribution, run: s.run, pass: pass, rank: s.self, c: c}
	if s.root != nil {
		s.root.receive(f)
		return nil
	}
	b := f.encode()
	s.mu.Lock()
	s.slots[s.window.slot(pass)].mine = b
	s.mu.Unlock()
	return s.publish("root", b)
}

// publish sends b. It ignores that b is lost while the client reconnects: a rank that waits sends its part again.
func (s *star) publish(to string, b []byte) error {
	err := s.conn.Publish(s.subject(to), b)
	if errors.Is(err, pubsub.ErrLost) {
		return nil
	}
	return err
}

func (s *star) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	s.mu.Lock()
	ready := s.slots[s.window.slot(pass)].ready
	s.mu.Unlock()
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
	return s.slots[s.window.slot(pass)].total
}

// askAgain sends the node's contribution to pass again, if it is complete.
func (s *star) askAgain(pass uint64) error {
	s.mu.Lock()
	b := s.slots[s.window.slot(pass)].mine
	s.mu.Unlock()
	if b == nil {
		return nil
	}
	return s.publish("root", b)
}

// sendMissing tells the root which ranks of the node have not contributed to pass.
func (s *star) sendMissing(pass uint64, gone []int) error {
	f := frame{kind: pending, run: s.run, pass: pass, rank: s.self, waiting: gone}
	if s.root != nil {
		s.root.receive(f)
		return nil
	}
	return s.publish("root", f.encode())
}

func (s *star) missing(pass uint64) []int {
	if s.root != nil {
		return s.root.missing(pass)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.slots[s.window.slot(pass)].waiting)
}

// receive handles a message from the server. It never blocks.
func (s *star) receive(m pubsub.Message) {
	f, err := decodeFrame(m.Data)
	if err == nil {
		err = s.check(f)
	}
	if err != nil {
		s.refuse(m.Subject, err)
		return
	}
	if s.root != nil {
		s.root.receive(f)
		return
	}
	if f.kind == total {
		s.deliver(f.pass, f.c)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot := &s.slots[s.window.slot(f.pass)]; slot.open && slot.pass == f.pass {
		slot.waiting = f.waiting
	}
}

func (s *star) check(f frame) error {
	if f.run != s.run {
		return fmt.Errorf("a frame of another run (%016x, this one is %016x)", f.run, s.run)
	}
	if len(f.c.Sums) > s.maxSums {
		return fmt.Errorf("%d sums from rank %d, at most %d were announced", len(f.c.Sums), f.rank, s.maxSums)
	}
	if s.root != nil {
		return s.root.check(f)
	}
	if f.rank != 0 || f.kind == contribution {
		return fmt.Errorf("a frame of kind %d from rank %d, totals come from rank 0", f.kind, f.rank)
	}
	return nil
}

// refuse counts a refused frame and logs the first one.
func (s *star) refuse(subject string, err error) {
	s.mu.Lock()
	s.refused++
	first := s.refused == 1
	s.mu.Unlock()
	if first {
		s.log.Warn("refused a frame of the norm's reduction; further ones are not logged",
			zap.String("subject", subject), zap.Error(err))
	}
}

// deliver sets the total of pass. Repetitions change nothing.
func (s *star) deliver(pass uint64, c solver.Contribution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &s.slots[s.window.slot(pass)]
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
