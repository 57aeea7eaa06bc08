package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
)

// joinGrace is added to the time that rank 0 has announced when a rank waits for the verdict.
const joinGrace = 2 * time.Second

// verdict is what rank 0 says to a rank that has said hello: at once, and when all have joined, how long it may take
// until the next one, by which the rank tells a lost rank 0 from one that waits for others. With Error or List it is
// final.
type verdict struct {
	Rank0 string        `json:"rank0,omitempty"` // rank 0 in words, for messages
	Left  time.Duration `json:"left,omitempty"`
	Error string        `json:"error,omitempty"`
	List  []byte        `json:"list,omitempty"` // as list.encode returns it
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

// ask says hello to rank 0 and waits for the final verdict.
func (t *Comm) ask(timeout time.Duration) (*list, error) {
	s, err := t.sayHello(timeout, nil)
	late := fmt.Sprintf("no answer from rank 0 of %d within %v", t.self.Size, timeout)
	for left := timeout; err == nil; {
		var v verdict
		switch v, err = t.hear(s, left, late); {
		case err != nil:
		case v.Error != "":
			return nil, errors.Join(errors.New(v.Error), flush(t.ctx, t.conn, flushTimeout))
		case v.List != nil:
			return t.readList(v.List)
		}
		left = max(0, min(v.Left, time.Hour)) + joinGrace
		late = v.Rank0 + " answered before, and no longer does"
	}
	return nil, err
}

// sayHello sends what this rank tells of itself to rank 0, which answers on the stream that it returns. handle is as in
// wire.StreamOptions. Any process may be rank 0, also a second one: the first to answer is the one that is heard.
func (t *Comm) sayHello(timeout time.Duration, handle func([]byte)) (*wire.Stream, error) {
	s, rank0 := t.meet("", joinSubject(t.self.RunID), handle), ""
	err := t.subscribe(verdictSubject(t.self.RunID, t.id), func(m pubsub.Message) {
		f, err := wire.ParseFrame(m.Data)
		if rank0 == "" && err == nil {
			rank0 = f.Label()
		}
		if err == nil && f.Label() == rank0 {
			s.Receive(f)
		}
	})
	var self []byte
	if err == nil {
		self, err = json.Marshal(t.self)
	}
	if err == nil {
		err = flush(t.ctx, t.conn, timeout)
	}
	if err == nil {
		err = s.Send(t.ctx, self)
	}
	return s, err
}

// meet makes the stream to a process with which this one joins; "" stands for that of rank 0. It ends with the comm.
func (t *Comm) meet(process, subject string, handle func([]byte)) *wire.Stream {
	pace := t.post.pace
	pace.First /= 2 // the first hellos often come before rank 0 listens
	t.post.mu.Lock()
	defer t.post.mu.Unlock()
	return t.post.make(line{-1, process},
		wire.StreamOptions{Conn: t.conn, Subject: subject, Label: t.id, Handle: handle, Pace: pace})
}

// hear waits for the next verdict, for the time that is left at most. late is why that is over.
func (t *Comm) hear(s *wire.Stream, left time.Duration, late string) (v verdict, err error) {
	ctx, cancel := awake.WithTimeoutCause(t.ctx, left, &TimeoutError{Op: late, Ranks: []int{0}})
	defer cancel()
	data, err := s.Recv(ctx)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	return v, err
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
