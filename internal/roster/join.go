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
	lastAsk  = time.Second // or askShare for each rank, if that is longer
	askShare = 200 * time.Microsecond
	// joinGrace is added to the time that rank 0 has announced when a rank waits for the verdict.
	joinGrace = 2 * time.Second
)

// hello is the message that a rank repeats to rank 0 until it has the verdict. Rank 0 sends it too, so that a second
// rank 0 receives it.
type hello struct {
	ID     string `json:"id"` // of the process; tells a repetition from a duplicate rank
	Member Member `json:"member"`
	Heard  bool   `json:"heard,omitempty"` // the verdict has arrived

	sent time.Time // on rank 0: when the process was sent the roster for itself
}

// verdict is rank 0's answer to a hello. It is final when Roster or Error is set. A verdict with a roster goes to all
// ranks at once; a rank that has missed it gets it again when it repeats its hello.
type verdict struct {
	Rank0  string        `json:"rank0,omitempty"` // rank 0 in words, for messages
	Left   time.Duration `json:"left,omitempty"`  // until rank 0 gives up
	Roster *list         `json:"roster,omitempty"`
	Error  string        `json:"error,omitempty"`
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
		alone := []Member{self}
		agreeLocal(alone)
		t.members, err = newList(alone)
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
func (t *Team) ask(timeout time.Duration) (*list, error) {
	answers := make(chan verdict, 16)
	receive := func(m pubsub.Message) {
		var v verdict
		if json.Unmarshal(m.Data, &v) != nil {
			return
		}
		select {
		case answers <- v:
		default: // too many at once: the next hello brings another
		}
	}
	rosters := make(chan *list, 1)
	err := errors.Join(
		t.subscribe(verdictSubject(t.self.RunID, t.id), receive),
		t.subscribe(rosterSubject(t.self.RunID), func(m pubsub.Message) {
			var v verdict
			if json.Unmarshal(m.Data, &v) != nil || v.Roster == nil {
				return
			}
			// A process that is not in the roster is told why when it says hello.
			if t.checkRoster(v.Roster) == nil {
				select {
				case rosters <- v.Roster:
				default:
				}
			}
		}),
	)
	if err == nil {
		_, err = t.encode("what a rank tells of itself", hello{ID: t.id, Member: t.self})
	}
	if err == nil {
		err = flush(t.ctx, t.conn, timeout)
	}
	if err != nil {
		return nil, err
	}
	deadline := awake.Of(t.ctx).NewTimer(timeout)
	defer deadline.Stop()
	wait, last := firstAsk, max(lastAsk, time.Duration(t.self.Size)*askShare)
	again := time.NewTimer(wait)
	defer again.Stop()
	rank0 := ""
	for t.sayHello(false); ; {
		select {
		case v := <-answers:
			if v.Error != "" {
				t.sayHello(true)
				return nil, errors.Join(errors.New(v.Error), flush(t.ctx, t.conn, flushTimeout))
			}
			if v.Roster != nil {
				return v.Roster, t.checkRoster(v.Roster)
			}
			rank0 = v.Rank0
			deadline.Reset(max(0, min(v.Left, time.Hour)) + joinGrace)
		case l := <-rosters:
			return l, nil
		case <-again.C:
			wait = min(2*wait, last)
			again.Reset(wait)
			t.sayHello(false)
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

// encode returns v as JSON, or an error if that is too large for one message.
func (t *Team) encode(what string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if limit := t.conn.MaxPayload(); int64(len(data)) > limit {
		return nil, fmt.Errorf("%s takes %d bytes, and max_payload in the configuration of the NATS server is %d",
			what, len(data), limit)
	}
	return data, nil
}

// sayHello sends a hello. It may fail or be lost: the caller repeats it.
func (t *Team) sayHello(heard bool) {
	if data, err := json.Marshal(hello{ID: t.id, Member: t.self, Heard: heard}); err == nil {
		_ = t.conn.Publish(joinSubject(t.self.RunID), data)
	}
}

// checkRoster checks a roster that rank 0 has sent.
func (t *Team) checkRoster(l *list) error {
	if err := l.check(t.self.Size); err != nil {
		return err
	}
	if own := l.member(t.self.Rank); own.PID != t.self.PID || own.Host != t.self.Host {
		return fmt.Errorf("rank 0 sent a roster with %v in the place of %v", own, t.self)
	}
	return nil
}
