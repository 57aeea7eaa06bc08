package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
)

const (
	// faultGrace is how long rank 0 waits for missing ranks once it knows that the run cannot start. The error then
	// names all faults, and all ranks get it.
	faultGrace = time.Second
	// ackGrace is how long rank 0 then waits for ranks to confirm the verdict.
	ackGrace = time.Second
	// resendShare is, for each rank of the run, how long a roster may take to arrive before it is sent again.
	resendShare = 2 * time.Millisecond
	// maxExtra bounds the processes that rank 0 remembers, beyond one for each rank.
	maxExtra = 1024
)

// collector is rank 0's part of Join. It answers hellos from the first one until the comm's Close.
//
// Join is neither a wire.Stream nor a wire.Ask. Who says hello is not known before, may be of another run or version,
// and may be two processes for one rank, so there are no two ends that a stream could connect. And a hello has several
// answers: at once one with the time that is left, by which a rank tells a lost rank 0 from one that waits for others;
// then, without being asked again, the verdict; and later that it came too late.
type collector struct {
	comm    *Comm
	start   time.Time
	timeout time.Duration
	limit   awake.Limit   // of the wait for ranks, and then of the time until all have the list
	changed chan struct{} // holds a token after a hello

	mu        sync.Mutex
	byRank    []*hello          // the first process to join as each rank; nil if none has
	joined    int               // entries of byRank that are not nil
	processes map[string]*hello // all processes that said hello, by ID
	faults    []string          // reasons why the run cannot start: foreign and duplicate ranks
	differs   bool              // a rank differs from rank 0 in what must be equal: see problems
	final     *verdict          // with an Error or a List
	sent      time.Time         // when the list was sent to all ranks
}

func (t *Comm) collect(timeout time.Duration) (*list, error) {
	self := &hello{ID: t.id, Member: t.self, Heard: true}
	c := &collector{
		comm: t, start: time.Now(), timeout: timeout, limit: awake.Of(t.ctx).Limit(timeout),
		changed: make(chan struct{}, 1),
		byRank:  make([]*hello, t.self.Size), processes: map[string]*hello{t.id: self},
	}
	c.byRank[0], c.joined = self, 1
	refused := make(chan verdict, 1)
	err := errors.Join(
		t.subscribe(joinSubject(t.self.RunID), c.receive),
		t.subscribe(verdictSubject(t.self.RunID, t.id), func(m pubsub.Message) {
			var v verdict
			if json.Unmarshal(m.Data, &v) == nil && v.Error != "" {
				select {
				case refused <- v:
				default:
				}
			}
		}),
	)
	if err == nil {
		err = t.fits("what a rank tells of itself", self)
	}
	if err == nil {
		err = flush(t.ctx, t.conn, timeout)
	}
	if err == nil {
		err = c.wait(refused)
	}
	if err != nil {
		return nil, err
	}
	return c.decide()
}

// wait returns when all ranks have joined, or when the time to wait for more is over.
func (c *collector) wait(refused <-chan verdict) error {
	deadline := awake.Of(c.comm.ctx).NewTimer(c.limit.Left())
	defer deadline.Stop()
	again := time.NewTicker(5 * firstAsk)
	defer again.Stop()
	var faultAt time.Time
	for c.comm.sayHello(c.comm.self, true); ; {
		complete, faulty := c.state()
		if complete {
			return nil
		}
		if faulty && faultAt.IsZero() {
			faultAt = time.Now()
			deadline.Reset(min(faultGrace, c.limit.Left()))
		}
		select {
		case <-c.changed:
		case <-again.C:
			c.comm.sayHello(c.comm.self, true)
		case v := <-refused:
			return errors.New(v.Error)
		case <-c.comm.ctx.Done():
			return context.Cause(c.comm.ctx)
		case <-deadline.C:
			return nil
		}
	}
}

func (c *collector) state() (complete, faulty bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined == len(c.byRank), c.differs || len(c.faults) > 0
}

// decide sends the roster or the error to all ranks.
func (c *collector) decide() (*list, error) {
	c.mu.Lock()
	problems := c.problems()
	if missing := c.missing(); missing != "" {
		problems = append(problems, missing)
	}
	v := verdict{Rank0: c.comm.self.String()}
	c.final = &v
	if len(problems) > 0 {
		v.Error = clip(strings.Join(problems, "; "))
	} else if l, err := c.list(&v); err != nil {
		v.List, v.Error = nil, clip(err.Error())
	} else {
		c.sent, c.limit = time.Now(), awake.Of(c.comm.ctx).Limit(c.timeout)
		c.tell(rosterSubject(c.comm.self.RunID), v)
		c.mu.Unlock()
		return l, nil
	}
	for id := range c.processes {
		c.answer(id, v)
	}
	c.mu.Unlock()
	if err := c.comm.fits("the reason", v); err != nil { // too long to be sent to the other ranks
		return nil, errors.New(v.Error)
	}
	c.waitAcks()
	return nil, errors.Join(errors.New(v.Error), flush(c.comm.ctx, c.comm.conn, flushTimeout))
}

// list returns the list of all ranks, and puts it into v.
func (c *collector) list(v *verdict) (l *list, err error) {
	l = newList(c.members())
	if v.List, err = l.encode(); err == nil {
		err = c.comm.fits(fmt.Sprintf("the list of %d ranks", len(c.byRank)), v)
	}
	return l, err
}

// begun reports whether the list was sent.
func (c *collector) begun() bool { return c.final != nil && c.final.List != nil }

// waitAcks waits, at most for ackGrace, until all processes have confirmed the verdict.
func (c *collector) waitAcks() {
	timer := time.NewTimer(ackGrace)
	defer timer.Stop()
	for {
		c.mu.Lock()
		all := true
		for _, h := range c.processes {
			all = all && h.Heard
		}
		c.mu.Unlock()
		if all {
			return
		}
		select {
		case <-c.changed:
		case <-timer.C:
			return
		case <-c.comm.ctx.Done():
			return
		}
	}
}

func (c *collector) receive(m pubsub.Message) {
	h := new(hello)
	if json.Unmarshal(m.Data, h) != nil || !runIDs.MatchString(h.ID) || h.ID == c.comm.id {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := verdict{Rank0: c.comm.self.String()}
	switch known := c.processes[h.ID]; {
	case known != nil:
		known.Heard = known.Heard || h.Heard
	case h.Member.Size == 0: // only its ID: another process has answered before, or none at all
		v.Who, v.Left = true, max(time.Millisecond, c.limit.Left())
		c.answer(h.ID, v)
		return
	case c.begun():
		v.Error = c.tooLate(h.Member)
		c.answer(h.ID, v)
		return
	case len(c.processes) < c.comm.self.Size+maxExtra:
		c.admit(h)
	}
	switch {
	case c.begun():
		c.sendAgain(h.ID)
	case c.final != nil:
		c.answer(h.ID, *c.final)
	default:
		v.Left = max(time.Millisecond, c.limit.Left())
		c.answer(h.ID, v)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// sendAgain sends the roster to a process that asks for it, unless one must still be on its way: many hellos wait here
// when a large roster goes out, and a roster for each of them would hold up the next ones. A process that still asks
// when the time of the join is over is refused, or it would ask forever.
func (c *collector) sendAgain(id string) {
	h, pause := c.processes[id], max(firstAsk, time.Duration(c.comm.self.Size)*resendShare)
	if h == nil {
		return // beyond maxExtra
	}
	v, left := verdict{Rank0: c.comm.self.String()}, c.limit.Left()
	if left <= 0 {
		v.Error = fmt.Sprintf("the list of ranks did not reach %v within %v", h.Member, c.timeout)
		c.answer(id, v)
		return
	}
	if now := time.Now(); now.Sub(c.sent) < pause || now.Sub(h.sent) < pause {
		v.Left = left
		c.answer(id, v)
		return
	}
	h.sent = time.Now()
	c.answer(id, *c.final)
}

// admit enters a process that says hello for the first time.
func (c *collector) admit(h *hello) {
	c.processes[h.ID] = h
	m, own := h.Member, c.comm.self
	switch {
	case m.RunID != own.RunID:
		c.faults = append(c.faults, fmt.Sprintf("%v belongs to run %s, not to run %s", m, m.RunID, own.RunID))
	case m.Size != own.Size:
		c.faults = append(c.faults, fmt.Sprintf("%v belongs to a run of %d ranks, not of %d", m, m.Size, own.Size))
	case m.Rank < 0 || m.Rank >= own.Size:
		c.faults = append(c.faults, fmt.Sprintf("%v does not belong to a run of %d ranks", m, own.Size))
	case c.byRank[m.Rank] != nil:
		c.faults = append(c.faults, duplicate(c.byRank[m.Rank].Member, m))
	default:
		c.byRank[m.Rank] = h
		c.joined++
	}
	c.differs = c.differs || !m.fits(own)
}

func duplicate(a, b Member) string {
	return fmt.Sprintf("rank %d joined twice: pid %d on host %s and pid %d on host %s", a.Rank, a.PID, a.Host, b.PID,
		b.Host)
}

// tooLate returns why a process that joins after the verdict has no place.
func (c *collector) tooLate(m Member) string {
	if m.Rank >= 0 && m.Rank < len(c.byRank) {
		return duplicate(c.byRank[m.Rank].Member, m) + ", which came after the start of the run"
	}
	return fmt.Sprintf("%v does not belong to this run of %d ranks, which has started", m, c.comm.self.Size)
}

// members returns the entries of all ranks, with the local ranks that were missing; nil if a rank has not joined.
func (c *collector) members() []Member {
	if c.joined < len(c.byRank) {
		return nil
	}
	members := make([]Member, len(c.byRank))
	for r, h := range c.byRank {
		members[r] = h.Member
	}
	agreeLocal(members)
	return members
}

// missing returns "ranks 5, 7 of 8 did not join within 30s; joined: 0-4, 6", or "" if all have joined.
func (c *collector) missing() string {
	var gone, here []int
	for r, h := range c.byRank {
		if h == nil {
			gone = append(gone, r)
		} else {
			here = append(here, r)
		}
	}
	if gone == nil {
		return ""
	}
	return fmt.Sprintf("%s of %d did not join within %v; joined: %s", FormatRanks(gone), c.comm.self.Size,
		min(time.Since(c.start).Round(10*time.Millisecond), c.timeout), formatRuns(here))
}

// answer sends v to the process id.
func (c *collector) answer(id string, v verdict) { c.tell(verdictSubject(c.comm.self.RunID, id), v) }

// tell sends v. It may be lost: whoever misses it asks again.
func (c *collector) tell(subject string, v verdict) {
	if data, err := json.Marshal(v); err == nil {
		_ = c.comm.conn.Publish(subject, data)
	}
}
