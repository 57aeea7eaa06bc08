package roster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/wire"
)

// flushTimeout bounds the wait for the server's answer to a flush.
const flushTimeout = 2 * time.Second

// Member describes a rank to the others. A rank sends it when it joins.
type Member struct {
	Identity
	Version    string   `json:"version"`     // of the program; must be equal on all ranks
	ConfigHash string   `json:"config_hash"` // must be equal on all ranks
	Functions  string   `json:"functions"`   // hash of elementary functions' values; must be equal on all ranks
	Platform   string   `json:"platform"`    // operating system and architecture, as in linux/arm64
	Host       string   `json:"host"`
	PID        int      `json:"pid"`
	Node       shm.Node `json:"node"` // zero if it is not known; see SharesMemory
	Role
	Extra json.RawMessage `json:"extra,omitempty"` // whatever else the program wants all ranks to know
}

func (m Member) String() string {
	return fmt.Sprintf("rank %d (host %s, pid %d)", m.Rank, m.Host, m.PID)
}

// ErrClosed is the cause of a Comm's context after Close.
var ErrClosed = errors.New("the rank has left its run")

// Comm is a rank's view of all ranks of its run, from Join to Close.
type Comm struct {
	self    Member
	working int // ranks that take part in collective calls; see SetWorking
	members *list
	conn    pubsub.Conn // nil for a run of one rank without a server
	id      string

	ctx     context.Context
	cancel  context.CancelCauseFunc
	post    *post
	asked   context.Context // ends when the launcher asks all ranks to stop
	askStop context.CancelFunc
	sweeps  atomic.Int64
	clock   *awake.Clock // of the process; that of ctx stands still while ranks are at work
	work    work

	parent *Comm  // the session; nil for a comm of its own
	number int    // of the run in its session
	scope  string // begins the tags of the run

	mu   sync.Mutex
	runs subRuns // of a session
	subs []pubsub.Subscription

	watching sync.Mutex  // held while watch is called
	watch    func(Event) // of a run without a server; nil: nobody watches
}

// newComm subscribes to the subjects that every rank reads. The comm has no members yet.
func newComm(ctx context.Context, conn pubsub.Conn, self Member) (*Comm, error) {
	t := &Comm{self: self, working: self.Size, conn: conn, id: rand.Text()}
	t.clock = awake.Of(ctx)
	t.asked, t.askStop = context.WithCancel(context.WithoutCancel(ctx))
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.ctx = awake.Start(t.ctx, t.work.goesOn)
	if conn == nil {
		return t, nil
	}
	t.post = &post{conn: conn, id: self.Identity, pace: paceOf(self.Size), lines: map[line]*wire.Stream{}}
	err := errors.Join(
		t.subscribe(abortSubject(self.RunID), t.receiveAbort),
		t.subscribe(stopSubject(self.RunID), t.receiveStop),
		t.subscribe(postSubject(self.RunID, self.Rank), t.post.receive),
	)
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Comm) subscribe(subject string, handle func(pubsub.Message)) error {
	sub, err := t.conn.Subscribe(subject, handle)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs = append(t.subs, sub)
	return nil
}

// Self returns the entry of this rank.
func (t *Comm) Self() Member { return t.Member(t.self.Rank) }

// Member returns the entry of a rank. Its Size is the number of working ranks.
func (t *Comm) Member(rank int) (m Member) {
	switch {
	case t.members != nil:
		m = t.members.member(rank)
	case t.self.Size == 1: // of a run that this rank does alone, before Agree
		m = t.self
	default:
		m = t.parent.members.member(rank)
	}
	m.Size = t.working
	return m
}

// Groups returns the entries of the working ranks in the order of the ranks, those of ranks that are alike together:
// about one for each node of a large run.
func (t *Comm) Groups() (groups []Group) {
	for _, g := range t.members.groups() {
		if g.First.Rank < t.working {
			g.First.Size, g.End = t.working, min(g.End, t.working)
			groups = append(groups, g)
		}
	}
	return groups
}

// Members returns the entries of the working ranks, by rank. They are made at each call, since
// those of a large run take much time and memory; see Groups.
func (t *Comm) Members() []Member {
	members := make([]Member, t.working)
	for r := range members {
		members[r] = t.Member(r)
	}
	return members
}

// Whole returns the Parts of all ranks together.
func (t *Comm) Whole() Part { return t.members.Whole }

// TakeWhole replaces Whole by that of a stage of t, in which its ranks have agreed once more.
func (t *Comm) TakeWhole(stage *Comm) { t.members.Whole = stage.Whole() }

// Conn returns the connection of this rank; nil for a run of one rank without a server.
func (t *Comm) Conn() pubsub.Conn { return t.conn }

// Subject returns the subject called name of this run, for users outside this package.
func (t *Comm) Subject(name string) string { return Subject(t.self.RunID, name) }

// Subject returns the subject that Comm.Subject returns, for those who watch a run.
func Subject(runID, name string) string { return prefix(runID) + ".x." + name }

// Name returns the name of what the ranks of t do together: a run, a run of a session, or a stage of a run. No other
// one has it.
func (t *Comm) Name() string { return t.self.RunID + "/" + t.scope }

// Context returns a context that ends with the one given to Join. Its cause is an *AbortError if a rank or the launcher
// aborted the run, and ErrClosed after Close. Its clock stands still while a rank is at work; see Worked.
func (t *Comm) Context() context.Context { return t.ctx }

// StopRequested returns a context that ends when the launcher asks all ranks to stop.
func (t *Comm) StopRequested() context.Context { return t.asked }

// Abort ends the run of all ranks because this rank failed with cause. If cause is another rank's abort, Abort tells
// the launcher alone. It returns when the server has the message, after at most 2 s.
func (t *Comm) Abort(cause error) error {
	abort := &AbortError{Rank: t.self.Rank, Host: t.self.Host, Cause: clip(cause.Error()),
		Consequence: IsConsequence(cause), Stopped: errors.Is(cause, ErrStopped),
		Cancelled: errors.Is(cause, ErrCancelled)}
	defer t.cancel(abort)
	err := t.Publish(Event{Kind: Aborted, Text: abort.Cause, Consequence: abort.Consequence})
	if t.conn == nil {
		return nil
	}
	ctx := context.WithoutCancel(t.ctx)
	_, told := errors.AsType[*AbortError](cause)
	switch {
	case !told && (t.parent == nil || t.self.Size > 1):
		of := *abort
		of.Run = t.number
		return errors.Join(err, AbortAll(ctx, t.conn, t.self.RunID, of))
	case t.parent == nil:
		return errors.Join(err, flush(ctx, t.conn, flushTimeout))
	}
	return nil
}

func (t *Comm) receiveAbort(m pubsub.Message) {
	a := new(AbortError)
	if json.Unmarshal(m.Data, a) != nil || a.Rank < -1 || a.Rank >= t.self.Size {
		return
	}
	if a.Run != 0 {
		t.receiveAbortOf(a)
		return
	}
	t.cancel(a)
}

// Close leaves the run: this rank receives no more messages. The connection stays open.
func (t *Comm) Close() {
	t.cancel(ErrClosed)
	if t.post != nil && t.parent == nil {
		t.post.close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.subs {
		_ = s.Unsubscribe() // fails only on a closed connection
	}
	t.subs = nil
}

// flush waits, at most for d, until the server has all that was published and subscribed.
func flush(ctx context.Context, conn pubsub.Conn, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := conn.FlushWithContext(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = context.Cause(ctx) // what the server refused, for instance
	}
	if err != nil {
		return fmt.Errorf("no answer from the NATS server: %w", err)
	}
	return nil
}

// within returns ctx, which also ends when the comm's context does, with the same cause.
func (t *Comm) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}
