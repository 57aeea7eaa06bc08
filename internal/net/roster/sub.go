package roster

import (
	"context"
	"maps"
	"slices"
	"strconv"

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
// and with an abort of the run. A run begins on all ranks in the order of the numbers.
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
		scope: scopeOf(number), post: t.post}
	sub.asked, sub.askStop = context.WithCancel(context.WithoutCancel(t.ctx))
	sub.ctx, sub.cancel = context.WithCancelCause(t.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs.now = sub
	for _, a := range t.runs.pending {
		if a.Run == number {
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

// Stage returns the comm of a stage of the run of t, which the working ranks of t do among themselves. Its messages
// have streams of their own. It ends with the run, and with a request to stop it. What fails in it fails in the run.
// The ranks of t must have agreed, because a stage takes their local ranks from there.
func (t *Comm) Stage(name string) *Comm {
	self := t.Self() // its Size is t.working
	stage := &Comm{self: self, working: t.working, conn: t.conn, id: t.id, parent: t, number: t.number,
		scope: t.scope + name + "/", post: t.post}
	stage.asked, stage.askStop = context.WithCancel(t.asked)
	stage.ctx, stage.cancel = context.WithCancelCause(t.ctx)
	return stage
}

func scopeOf(number int) string { return strconv.Itoa(number) + "/" }

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
		now.cancel(a)
	case (now == nil || now.number < a.Run) && len(t.runs.pending) <= t.self.Size:
		t.runs.pending = append(t.runs.pending, a)
	}
}

// publishOf sends the event of a run to those who watch its session. The others of its events are its session's.
func (t *Comm) publishOf(e Event) error {
	if e.Kind != Progress && e.Kind != Started {
		return nil
	}
	e.Run = t.number
	return t.parent.Publish(e)
}
