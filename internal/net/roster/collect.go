package roster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
)

const (
	// faultGrace is how long rank 0 waits for missing ranks once it knows that the run cannot start. The error then
	// names all faults, and all ranks get it.
	faultGrace = time.Second
	// ackGrace is how long rank 0 then waits for ranks to confirm the verdict.
	ackGrace = time.Second
	// maxExtra bounds the processes that rank 0 remembers, beyond one for each rank.
	maxExtra = 1024
)

// collector is rank 0's part of Join. It answers hellos from the first one until the comm's Close.
type collector struct {
	comm    *Comm
	start   time.Time
	timeout time.Duration
	limit   awake.Limit   // of the wait for ranks
	changed chan struct{} // holds a token after a hello

	mu        sync.Mutex
	byRank    []*Member               // the first process to join as each rank; nil if none has
	joined    int                     // entries of byRank that are not nil
	processes map[string]*wire.Stream // to all processes that have sent something, by ID
	waiting   []*wire.Stream          // to those that have said hello and wait for the verdict
	faults    []string                // reasons why the run cannot start: foreign and duplicate ranks
	differs   bool                    // a rank differs from rank 0 in what must be equal: see problems
	final     *verdict                // with an Error or a List
}

func (t *Comm) collect(timeout time.Duration) (*list, error) {
	c := &collector{
		comm: t, start: time.Now(), timeout: timeout, limit: awake.Of(t.ctx).Limit(timeout),
		changed: make(chan struct{}, 1),
		byRank:  make([]*Member, t.self.Size), processes: map[string]*wire.Stream{},
	}
	c.byRank[0], c.joined = &t.self, 1
	if err := t.subscribe(joinSubject(t.self.RunID), c.receive); err != nil {
		return nil, err
	}
	refused := make(chan string, 1)
	s, err := t.sayHello(timeout, func(message []byte) { // to a second rank 0
		var v verdict
		if json.Unmarshal(message, &v) == nil && v.Error != "" {
			refused <- v.Error // it is the last message
		}
	})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	refusal, err := c.wait(refused)
	if err != nil {
		return nil, err
	}
	return c.decide(refusal)
}

// wait returns when all ranks have joined, when the time to wait for more is over, or with the reason when another rank
// 0 has refused this one.
func (c *collector) wait(refused <-chan string) (refusal string, err error) {
	deadline := awake.Of(c.comm.ctx).NewTimer(c.limit.Left())
	defer deadline.Stop()
	var faultAt time.Time
	for {
		complete, faulty := c.state()
		if complete {
			return "", nil
		}
		if faulty && faultAt.IsZero() {
			faultAt = time.Now()
			deadline.Reset(min(faultGrace, c.limit.Left()))
		}
		select {
		case <-c.changed:
		case refusal = <-refused:
			return refusal, nil
		case <-c.comm.ctx.Done():
			return "", context.Cause(c.comm.ctx)
		case <-deadline.C:
			return "", nil
		}
	}
}

func (c *collector) state() (complete, faulty bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined == len(c.byRank), c.differs || len(c.faults) > 0
}

// decide sends the roster or the error to all ranks. A refusal is the error.
func (c *collector) decide(refusal string) (l *list, err error) {
	v := verdict{Error: refusal}
	c.mu.Lock()
	problems := c.problems()
	if missing := c.missing(); missing != "" {
		problems = append(problems, missing)
	}
	switch {
	case refusal != "":
	case len(problems) > 0:
		v.Error = clip(strings.Join(problems, "; "))
	default:
		l = newList(c.members())
		if v.List, err = l.encode(); err != nil {
			v.Error = clip(err.Error())
		}
	}
	c.final = &v
	if v.Error == "" {
		for _, s := range c.waiting { // the lists of many ranks take time to arrive
			c.tell(s, verdict{Left: c.timeout})
		}
	}
	for _, s := range c.waiting {
		c.tell(s, v)
	}
	c.mu.Unlock()
	if v.Error == "" {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(c.comm.ctx, ackGrace)
	defer cancel()
	for _, s := range c.waiting { // to which nothing is added any more
		_ = s.Flush(ctx) // whoever does not confirm the verdict may have left
	}
	return nil, errors.Join(errors.New(v.Error), flush(c.comm.ctx, c.comm.conn, flushTimeout))
}

// receive handles a message of a process that joins, of which its label has the ID.
func (c *collector) receive(m pubsub.Message) {
	f, err := wire.ParseFrame(m.Data)
	if err != nil || f.Label() == c.comm.id || !runIDs.MatchString(f.Label()) {
		return
	}
	if s := c.stream(f.Label(), f.First()); s != nil {
		s.Receive(f)
	}
}

// stream returns the stream to a process. It makes one for the first frame of the process.
func (c *collector) stream(id string, first bool) *wire.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.processes[id]
	if s == nil && first && len(c.processes) < c.comm.self.Size+maxExtra {
		s = c.comm.meet(id, verdictSubject(c.comm.self.RunID, id), func(hello []byte) { c.hear(s, hello) })
		c.processes[id] = s
	}
	return s
}

// hear takes the hello of a process and answers it.
func (c *collector) hear(s *wire.Stream, hello []byte) {
	m := new(Member)
	if json.Unmarshal(hello, m) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.final == nil:
		c.admit(m)
		c.waiting = append(c.waiting, s)
		c.tell(s, verdict{Left: max(time.Millisecond, c.limit.Left())})
	case c.final.List != nil:
		c.tell(s, verdict{Error: c.tooLate(*m)})
	default:
		c.tell(s, *c.final)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// tell sends v. It does not wait: few chunks are under way to a process.
func (c *collector) tell(s *wire.Stream, v verdict) {
	v.Rank0 = c.comm.self.String()
	if data, err := json.Marshal(v); err == nil {
		_ = s.Send(c.comm.ctx, data) // fails when the comm has ended, or the stream
	}
}

// admit enters a process that says hello.
func (c *collector) admit(m *Member) {
	own := c.comm.self
	switch {
	case m.RunID != own.RunID:
		c.faults = append(c.faults, fmt.Sprintf("%v belongs to run %s, not to run %s", m, m.RunID, own.RunID))
	case m.Size != own.Size:
		c.faults = append(c.faults, fmt.Sprintf("%v belongs to a run of %d ranks, not of %d", m, m.Size, own.Size))
	case m.Rank < 0 || m.Rank >= own.Size:
		c.faults = append(c.faults, fmt.Sprintf("%v does not belong to a run of %d ranks", m, own.Size))
	case c.byRank[m.Rank] != nil:
		c.faults = append(c.faults, duplicate(*c.byRank[m.Rank], *m))
	default:
		c.byRank[m.Rank] = m
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
		return duplicate(*c.byRank[m.Rank], m) + ", which came after the start of the run"
	}
	return fmt.Sprintf("%v does not belong to this run of %d ranks, which has started", m, c.comm.self.Size)
}

// members returns the entries of all ranks, which have joined, with the local ranks that were missing.
func (c *collector) members() []Member {
	members := make([]Member, len(c.byRank))
	for r, m := range c.byRank {
		members[r] = *m
	}
	agreeLocal(members)
	return members
}

// missing returns "ranks 5, 7 of 8 did not join within 30s; joined: 0-4, 6", or "" if all have joined.
func (c *collector) missing() string {
	var gone, here []int
	for r, m := range c.byRank {
		if m == nil {
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

// fits reports whether two ranks agree in all that must be equal.
func (m Member) fits(o Member) bool {
	return m.Version == o.Version && m.ConfigHash == o.ConfigHash && m.Functions == o.Functions
}

// problems returns the reasons why the run cannot start, except for missing ranks.
func (c *collector) problems() []string {
	p := slices.Clone(c.faults)
	p = c.differing(p, "version", func(m Member) string { return m.Version })
	p = c.differing(p, "configuration hash", func(m Member) string { return m.ConfigHash })
	return c.computing(p, "the elementary functions", "together they would compute other bits than each alone",
		func(m Member) string { return m.Functions })
}

// computing adds a problem if get, a hash of computed values, differs among the ranks that have joined. It names the
// first rank and the first one that differs from it.
func (c *collector) computing(p []string, what, why string, get func(Member) string) []string {
	var first *Member
	for _, m := range c.byRank {
		switch {
		case m == nil:
		case first == nil:
			first = m
		case get(*m) != get(*first):
			where := func(m Member) string { return fmt.Sprintf("%v on %s (hash %s)", m, m.Platform, get(m)) }
			return append(p, where(*first)+" and "+where(*m)+" have different values of "+what+": "+why)
		}
	}
	return p
}

// differing adds a problem if get differs among the ranks that have joined.
func (c *collector) differing(p []string, what string, get func(Member) string) []string {
	ranks := map[string][]int{}
	for r, m := range c.byRank {
		if m != nil {
			ranks[get(*m)] = append(ranks[get(*m)], r)
		}
	}
	if len(ranks) < 2 {
		return p
	}
	type group struct {
		value string
		ranks []int
	}
	var groups []group
	for v, r := range ranks {
		groups = append(groups, group{v, r})
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.ranks[0], b.ranks[0]) })
	var parts []string
	for _, g := range groups {
		parts = append(parts, fmt.Sprintf("%q on %s", g.value, FormatRanks(g.ranks)))
	}
	return append(p, "the ranks differ in "+what+": "+strings.Join(parts, ", "))
}
