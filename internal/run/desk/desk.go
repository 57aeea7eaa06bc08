// Package desk carries the runs of a session from the launcher to the ranks, and their results back.
package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
)

// Order is a run that a rank is to do.
type Order struct {
	Number   int             `json:"number"` // of the run in its session, from 1
	Document json.RawMessage `json:"document,omitempty"`
	Hash     bool            `json:"hash,omitempty"`     // the report has the SHA-256 of the field
	Progress bool            `json:"progress,omitempty"` // the run publishes its progress
	Alone    bool            `json:"alone,omitempty"`    // the rank does it without the others, which do not have it
	End      bool            `json:"end,omitempty"`      // no run follows
	Stopped  bool            `json:"stopped,omitempty"`  // it ends because a rank was asked to stop
}

// Answer tells what became of a run. Rank 0 answers for all ranks. Number 0 says that the rank takes orders.
type Answer struct {
	Number  int             `json:"number"`
	Report  json.RawMessage `json:"report,omitempty"`
	Refused string          `json:"refused,omitempty"` // why the run has not begun
	Failed  string          `json:"failed,omitempty"`  // why it has no end
	Stop    bool            `json:"stop,omitempty"`    // the rank was asked to stop: no order is to follow but the end
}

// Desk is one end of the way between the launcher and a rank.
type Desk struct {
	stream *wire.Stream
	sub    pubsub.Subscription
}

// flushTimeout bounds the wait for the server's answer.
const flushTimeout = 10 * time.Second

func orders(runID string, rank int) string {
	return roster.Subject(runID, "orders."+strconv.Itoa(rank))
}

func answers(runID string, rank int) string {
	return roster.Subject(runID, "answers."+strconv.Itoa(rank))
}

// AtLauncher opens the launcher's ends of the ways to all ranks, before they start.
func AtLauncher(ctx context.Context, conn pubsub.Conn, runID string, ranks int) (desks []*Desk, err error) {
	for rank := range ranks {
		d, err := open(conn, answers(runID, rank), orders(runID, rank))
		if err != nil {
			return nil, err // the subscriptions end with the connection
		}
		desks = append(desks, d)
	}
	return desks, flush(ctx, conn)
}

// AtRank opens the end of a rank.
func AtRank(ctx context.Context, conn pubsub.Conn, runID string, rank int) (*Desk, error) {
	d, err := open(conn, orders(runID, rank), answers(runID, rank))
	if err == nil {
		err = flush(ctx, conn)
	}
	return d, err
}

func open(conn pubsub.Conn, own, other string) (*Desk, error) {
	d := &Desk{stream: wire.NewStream(wire.StreamOptions{Conn: conn, Subject: other})}
	var err error
	d.sub, err = conn.Subscribe(own, func(m pubsub.Message) {
		if f, err := wire.ParseFrame(m.Data); err == nil {
			d.stream.Receive(f)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", own, err)
	}
	return d, nil
}

// flush returns once the server has the subscriptions.
func flush(ctx context.Context, conn pubsub.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("subscribe to the messages of a study: %w", err)
	}
	return nil
}

// Close ends all calls of this end.
func (d *Desk) Close() {
	_ = d.sub.Unsubscribe() // fails only on a closed connection
	d.stream.Stop()
}

// Send sends an Order or an Answer. It does not wait until the other end has it.
func (d *Desk) Send(ctx context.Context, message any) error {
	data, err := json.Marshal(message)
	if err == nil {
		err = d.stream.Send(ctx, data)
	}
	if err != nil {
		return fmt.Errorf("send a message of the study: %w", err)
	}
	return nil
}

// Flush returns once the other end has all that was sent.
func (d *Desk) Flush(ctx context.Context) error { return d.stream.Flush(ctx) }

// Recv waits for the next Order or Answer, which it stores in message.
func (d *Desk) Recv(ctx context.Context, message any) error {
	data, err := d.stream.Recv(ctx)
	if err == nil {
		err = json.Unmarshal(data, message)
	}
	if err != nil {
		return fmt.Errorf("receive a message of the study: %w", err)
	}
	return nil
}
