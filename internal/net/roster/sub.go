package roster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"jacobi/internal/base/pubsub"
)

// subRuns are the runs of a session, which follow one another: the one at work, and what has arrived for the next ones.
type subRuns struct {
	now     *Comm
	last    [2]int        // the newest runs of all ranks, the newest first
	pending []*AbortError // of runs after now
	stopped map[int]bool  // runs after now that were asked to stop
}

// Sub returns the comm of a run of the session of t, numbered from 1. Its ranks are those of t. Its messages have
// streams of their own, so that nothing of a run that has failed reaches another one. Its context ends with that of t,
// and with an abort of the run. Agree gives it its members. A run begins on all ranks in the order of the numbers.
func (t *Comm) Sub(number int) *Comm {
	sub := t.sub(number, t.self)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.post != nil {
		t.post.forget(scopeOf(t.runs.last[1])) // a rank may still repeat what it has sent in the run before this one
	}
	t.runs.last = [2]int{number, t.runs.last[0]}
	return sub
}

// Alone returns the comm of a run of the session of t that this rank does without the others.
func (t *Comm) Alone(number int) *Comm {
	self := t.self
	self.Rank, self.Size, self.LocalRank, self.LocalSize = 0, 1, 0, 1
	return t.sub(number, self)
}

// sub returns the comm of a run, in which this rank is self.
func (t *Comm) sub(number int, self Member) *Comm {
	sub := &Comm{self: self, working: self.Size, conn: t.conn, id: t.id, parent: t, number: number,
		scope: scopeOf(number), post: t.post, stop: make(chan struct{})}
	sub.ctx, sub.cancel = context.WithCancelCause(t.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs.now = sub
	for _, a := range t.runs.pending {
		if a.Run == number {
			sub.keepAbort(a)
			sub.cancel(a)
		}
	}
	t.runs.pending = slices.DeleteFunc(t.runs.pending, func(a *AbortError) bool { return a.Run <= number })
	if t.runs.stopped[number] {
		sub.askStop()
	}
	maps.DeleteFunc(t.runs.stopped, func(n int, _ bool) bool { return n <= number })
	return sub
}

func scopeOf(number int) string { return strconv.Itoa(number) + "/" }

func (t *Comm) askStop() { t.stopOnce.Do(func() { close(t.stop) }) }

// receiveStop takes a request to stop: of a run whose number it holds, or of everything.
func (t *Comm) receiveStop(m pubsub.Message) {
	if len(m.Data) == 0 {
		t.askStop()
		return
	}
	number, err := strconv.Atoi(string(m.Data))
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now := t.runs.now; {
	case now != nil && now.number == number:
		now.askStop()
	case (now == nil || now.number < number) && len(t.runs.stopped) < maxRuns:
		if t.runs.stopped == nil {
			t.runs.stopped = map[int]bool{}
		}
		t.runs.stopped[number] = true
	}
}

// receiveAbortOf takes the abort of a run of this session.
func (t *Comm) receiveAbortOf(a *AbortError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now := t.runs.now; {
	case now != nil && now.number == a.Run:
		now.keepAbort(a)
		now.cancel(a)
	case (now == nil || now.number < a.Run) && len(t.runs.pending) <= t.self.Size:
		t.runs.pending = append(t.runs.pending, a)
	}
}

// RequestStopOf asks every rank to stop one run of a session at a common sweep.
func RequestStopOf(ctx context.Context, conn Conn, runID string, number int) error {
	if err := publishAndFlush(ctx, conn, stopSubject(runID), []byte(strconv.Itoa(number))); err != nil {
		return fmt.Errorf("stop run %d of %s: %w", number, runID, err)
	}
	return nil
}

// RefusedError says why a run has not begun. All its ranks have the same one, and may go on to the next run.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// said is what a rank says of itself in Agree.
type said struct {
	Member Member `json:"member"`
	Fault  string `json:"fault,omitempty"`
}

// agreed is the answer of rank 0.
type agreed struct {
	Fault string `json:"fault,omitempty"`
	List  []byte `json:"list,omitempty"`
}

// Agree gives the ranks of a Sub its roster, as Join does for a session. A fault, if it is not nil, is why this rank
// cannot take part in the run. All ranks call Agree, and where ranks differ or have faults, all get the same
// *RefusedError.
func (t *Comm) Agree(ctx context.Context, self Member, fault error) error {
	mine := said{Member: self}
	if fault != nil {
		mine.Fault = clip(fault.Error())
	}
	answer, err := DecideOn(ctx, t, "agree", mine, func(all []said) (a agreed, err error) {
		if a.Fault = t.faultsOf(all); a.Fault != "" {
			return a, nil
		}
		members := make([]Member, len(all))
		for r, s := range all {
			members[r] = s.Member
		}
		agreeLocal(members)
		l, err := newList(members)
		if err == nil {
			a.List, err = l.encode()
		}
		return a, err
	})
	if err != nil {
		return err
	}
	if answer.Fault != "" {
		return &RefusedError{answer.Fault}
	}
	t.members, err = parseList(answer.List, t.self.Size)
	return err
}

// faultsOf returns why the run cannot begin: a fault that all ranks have, or those of single ranks, or how they differ.
func (t *Comm) faultsOf(all []said) string {
	var faults []string
	for r, s := range all {
		if s.Fault != "" {
			faults = append(faults, fmt.Sprintf("rank %d: %s", r, s.Fault))
		}
	}
	same := func(s said) bool { return s.Fault == all[0].Fault }
	switch {
	case len(faults) == len(all) && !slices.ContainsFunc(all, func(s said) bool { return !same(s) }):
		return all[0].Fault
	case faults != nil:
		return clip(strings.Join(faults, "; "))
	}
	c := &collector{comm: t, byRank: make([]*hello, len(all))}
	for r := range all {
		c.byRank[r] = &hello{Member: all[r].Member}
	}
	return clip(strings.Join(c.problems(), "; "))
}

// publishOf sends the event of a run to those who watch its session. The others of its events are its session's.
func (t *Comm) publishOf(e Event) error {
	if e.Kind != Progress && e.Kind != Started {
		return nil
	}
	e.Run = t.number
	return t.parent.Publish(e)
}

// abortOf ends the run on all its ranks.
func (t *Comm) abortOf(ctx context.Context, abort AbortError) error {
	if t.self.Size == 1 {
		return nil
	}
	abort.Run = t.number
	data, err := json.Marshal(abort)
	if err == nil {
		err = publishAndFlush(ctx, t.conn, abortSubject(t.self.RunID), data)
	}
	return err
}
