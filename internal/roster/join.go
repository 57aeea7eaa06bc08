package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"jacobi/internal/awake"
	"jacobi/internal/pubsub"
)

const (
	firstAsk = 50 * time.Millisecond
	lastAsk  = time.Second
	// joinGrace is added to the time that rank 0 has announced when a rank waits for the verdict.
	joinGrace = 2 * time.Second
)

// hello is the message that a rank repeats to rank 0 until it has the verdict. Rank 0 sends it too, so that a second
// rank 0 receives it.
type hello struct {
	ID     string `json:"id"` // of the process; tells a repetition from a duplicate rank
	Member Member `json:"member"`
	Heard  bool   `json:"heard,omitempty"` // the verdict has arrived
}

// verdict is rank 0's answer to a hello. It is final when Members or Error is set.
type verdict struct {
	Rank0   Member        `json:"rank0"`
	Left    time.Duration `json:"left,omitempty"` // until rank 0 gives up
	Members []Member      `json:"members,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// Join meets the other ranks of self's run. All ranks call it, in any order. Every rank gets the same roster, or every
// rank that can be reached gets the same error: a rank did not join within timeout (counted from rank 0's call), joined
// twice, belongs to a run of another size, or has another version or configuration, or computes other values. The team
// lives until its Close or the end of ctx. conn may be nil for a run of one rank.
func Join(ctx context.Context, conn Conn, self Member, timeout time.Duration) (*Team, error) {
	fail := func(err error) (*Team, error) {
		return nil, fmt.Errorf("join run %s: %w", self.RunID, err)
	}
	if err := self.check(); err != nil {
		return fail(err)
	}
	if conn == nil && self.Size > 1 {
		return fail(fmt.Errorf("a run of %d ranks needs a NATS server", self.Size))
	}
	t, err := newTeam(ctx, conn, self)
	if err != nil {
		return fail(err)
	}
	switch {
	case conn == nil:
		t.members = []Member{self}
		agreeLocal(t.members)
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
func (t *Team) ask(timeout time.Duration) ([]Member, error) {
	answers := make(chan verdict, 16)
	err := t.subscribe(verdictSubject(t.self.RunID, t.id), func(m pubsub.Message) {
		var v verdict
		if json.Unmarshal(m.Data, &v) != nil {
			return
		}
		select {
		case answers <- v:
		default: // too many at once: the next hello brings another
		}
	})
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
	wait := firstAsk
	again := time.NewTimer(wait)
	defer again.Stop()
	var rank0 *Member
	for t.sayHello(false); ; {
		select {
		case v := <-answers:
			if v.Error != "" {
				t.sayHello(true)
				return nil, errors.Join(errors.New(v.Error), flush(t.ctx, t.conn, flushTimeout))
			}
			if v.Members != nil {
				return v.Members, t.checkRoster(v.Members)
			}
			rank0 = &v.Rank0
			deadline.Reset(max(0, min(v.Left, time.Hour)) + joinGrace)
		case <-again.C:
			wait = min(2*wait, lastAsk)
			again.Reset(wait)
			t.sayHello(false)
		case <-t.ctx.Done():
			return nil, context.Cause(t.ctx)
		case <-deadline.C:
			if rank0 == nil {
				return nil, &TimeoutError{Op: fmt.Sprintf("no answer from rank 0 of %d within %v", t.self.Size,
					timeout), Ranks: []int{0}}
			}
			return nil, &TimeoutError{Op: fmt.Sprintf("%v answered before, and no longer does", rank0), Ranks: []int{0}}
		}
	}
}

// fits returns an error if v, encoded as JSON, is too large for one message.
func (t *Team) fits(what string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if limit := t.conn.MaxPayload(); int64(len(data)) > limit {
		return fmt.Errorf("%s takes %d bytes, and max_payload in the configuration of the NATS server is %d",
			what, len(data), limit)
	}
	return nil
}

// sayHello sends a hello. It may fail or be lost: the caller repeats it.
func (t *Team) sayHello(heard bool) {
	if data, err := json.Marshal(hello{ID: t.id, Member: t.self, Heard: heard}); err == nil {
		_ = t.conn.Publish(joinSubject(t.self.RunID), data)
	}
}

func (t *Team) checkRoster(members []Member) error {
	if len(members) != t.self.Size {
		return fmt.Errorf("rank 0 sent a roster of %d ranks, want %d", len(members), t.self.Size)
	}
	for r, m := range members {
		if m.Rank != r {
			return fmt.Errorf("rank 0 sent a roster with rank %d in the place of rank %d", m.Rank, r)
		}
	}
	if own := members[t.self.Rank]; own.PID != t.self.PID || own.Host != t.self.Host {
		return fmt.Errorf("rank 0 sent a roster with %v in the place of %v", own, t.self)
	}
	return nil
}
