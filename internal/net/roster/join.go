package roster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
)

const (
	firstAsk   = 50 * time.Millisecond // or firstShare for each rank, if that is longer: rank 0 hears all of them
	firstShare = 100 * time.Microsecond
	lastAsk    = time.Second // or askShare for each rank
	askShare   = time.Millisecond
	// joinGrace is added to the time that rank 0 has announced when a rank waits for the verdict.
	joinGrace = 2 * time.Second
)

// hello is the message that a rank repeats to rank 0 until it has the verdict. Rank 0 sends it too, so that a second
// rank 0 receives it. Once rank 0 has answered, the ID alone is repeated.
type hello struct {
	ID     string `json:"id"` // of the process; tells a repetition from a duplicate rank
	Member Member `json:"member,omitzero"`
	Heard  bool   `json:"heard,omitempty"` // the verdict has arrived

	sent time.Time // on rank 0: when the process was sent the roster for itself
}

// verdict is rank 0's answer to a hello. It is final when Error or List is set. One with the list goes to all ranks at
// once; a rank that has missed it gets it again when it repeats its hello.
type verdict struct {
	Rank0 string        `json:"rank0,omitempty"` // rank 0 in words, for messages
	Left  time.Duration `json:"left,omitempty"`  // until rank 0 gives up
	Who   bool          `json:"who,omitempty"`   // rank 0 does not know the ID, and wants the whole hello
	Error string        `json:"error,omitempty"`
	List  []byte        `json:"list,omitempty"` // as list.encode returns it

	mine bool // it came to this process alone
}

// Join meets the other ranks of self's run. All ranks call it, in any order. Every rank gets the same roster, or every
// rank that can be reached gets the same error: a rank did not join within timeout (counted from rank 0's call), joined
// twice, belongs to a run of another size, or has another version or configuration, or computes other values. The comm
// lives until its Close or the end of ctx. conn may be nil for a run of one rank.
func Join(ctx context.Context, conn pubsub.Conn, self Member, timeout time.Duration) (*Comm, error) {
	fail := func(err error) (*Comm, error) {
		return nil, fmt.Errorf("join run %s: %w", self.RunID, err)
	}
	if err := self.check(); err != nil {
		return fail(err)
	}
	if conn == nil && self.Size > 1 {
		return fail(fmt.Errorf("a run of %d ranks needs a NATS server", self.Size))
	}
	t, err := newComm(ctx, conn, self)
	if err != nil {
		return fail(err)
	}
	switch {
	case conn == nil:
		alone := []Member{self}
		agreeLocal(alone)
		t.members = newList(alone)
	case self.Rank == 0:
		t.members, err = t.collect(timeout)
	default:
		t.members, err = t.ask(timeout)
	}
	if err == nil {
		err = t.Publish(Event{Kind: Joined})
	}
	if err != nil {
		t.Close()
		return fail(err)
	}
	return t, nil
}

// ask repeats hello to rank 0 until the verdict is final.
func (t *Comm) ask(timeout time.Duration) (*list, error) {
	answers := make(chan verdict, 16)
	err := t.hear(answers)
	if err == nil {
		err = t.fits("what a rank tells of itself", hello{ID: t.id, Member: t.self})
	}
	if err == nil {
		err = flush(t.ctx, t.conn, timeout)
	}
	if err != nil {
		return nil, err
	}
	deadline := awake.Of(t.ctx).NewTimer(timeout)
	defer deadline.Stop()
	size := time.Duration(t.self.Size)
	wait, last := max(firstAsk, size*firstShare), max(lastAsk, size*askShare)
	again := time.NewTimer(wait)
	defer again.Stop()
	rank0, known := "", false
	for t.sayHello(t.self, false); ; {
		select {
		case v := <-answers:
			if v.Error != "" {
				t.sayHello(t.self, true)
				return nil, errors.Join(errors.New(v.Error), flush(t.ctx, t.conn, flushTimeout))
			}
			if v.List != nil {
				// A process that is not in the list for all is told why when it says hello.
				if l, err := t.readList(v.List); err == nil || v.mine {
					return l, err
				}
				continue
			}
			if known = !v.Who; !known {
				t.sayHello(t.self, false)
			}
			rank0 = v.Rank0
			deadline.Reset(max(0, min(v.Left, time.Hour)) + joinGrace)
		case <-again.C:
			wait = min(2*wait, last)
			again.Reset(wait)
			if known {
				t.sayHello(Member{}, false)
			} else {
				t.sayHello(t.self, false)
			}
		case <-t.ctx.Done():
			return nil, context.Cause(t.ctx)
		case <-deadline.C:
			if rank0 == "" {
				return nil, &TimeoutError{Op: fmt.Sprintf("no answer from rank 0 of %d within %v", t.self.Size,
					timeout), Ranks: []int{0}}
			}
			return nil, &TimeoutError{Op: fmt.Sprintf("%s answered before, and no longer does", rank0), Ranks: []int{0}}
		}
	}
}

// hear passes on what rank 0 says to this process and to all.
func (t *Comm) hear(answers chan<- verdict) error {
	take := func(mine bool) func(pubsub.Message) {
		return func(m pubsub.Message) {
			v := verdict{mine: mine}
			if json.Unmarshal(m.Data, &v) != nil {
				return
			}
			select {
			case answers <- v:
			default: // too many at once: the next hello brings another
			}
		}
	}
	return errors.Join(
		t.subscribe(verdictSubject(t.self.RunID, t.id), take(true)),
		t.subscribe(rosterSubject(t.self.RunID), take(false)),
	)
}

// fits returns an error if v as JSON is too large for one message.
func (t *Comm) fits(what string, v any) error {
	data, err := json.Marshal(v)
	if limit := t.conn.MaxPayload(); err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s takes %d bytes, and max_payload in the configuration of the NATS server is %d",
			what, len(data), limit)
	}
	return err
}

// sayHello sends a hello with what this rank tells of itself, or nothing of it. It may fail or be lost: the caller
// repeats it.
func (t *Comm) sayHello(self Member, heard bool) {
	if data, err := json.Marshal(hello{ID: t.id, Member: self, Heard: heard}); err == nil {
		_ = t.conn.Publish(joinSubject(t.self.RunID), data)
	}
}

// readList reads a list that rank 0 has sent.
func (t *Comm) readList(data []byte) (*list, error) {
	l, err := parseList(data, t.self.Size)
	if err != nil {
		return nil, err
	}
	if own := l.member(t.self.Rank); own.PID != t.self.PID || own.Host != t.self.Host {
		return nil, fmt.Errorf("rank 0 sent a roster with %v in the place of %v", own, t.self)
	}
	return l, nil
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
	return c.computing(p)
}

// computing adds a problem if the elementary functions differ among the ranks that have joined. It names the first rank
// and the first one that differs from it.
func (c *collector) computing(p []string) []string {
	var first *Member
	for _, h := range c.byRank {
		switch {
		case h == nil:
		case first == nil:
			first = &h.Member
		case h.Member.Functions != first.Functions:
			where := func(m Member) string { return fmt.Sprintf("%v on %s (hash %s)", m, m.Platform, m.Functions) }
			return append(p, where(*first)+" and "+where(h.Member)+" have different values of the elementary "+
				"functions: together they would compute other bits than each alone")
		}
	}
	return p
}

// differing adds a problem if get differs among the ranks that have joined.
func (c *collector) differing(p []string, what string, get func(Member) string) []string {
	ranks := map[string][]int{}
	for r, h := range c.byRank {
		if h != nil {
			ranks[get(h.Member)] = append(ranks[get(h.Member)], r)
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
